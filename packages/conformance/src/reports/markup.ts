/** Text that is HTML: every value in it was escaped. */
class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** HTML from a template: values are escaped, unless they are {@link Markup}; those of an array follow one another. */
export function html(parts: TemplateStringsArray, ...values: readonly unknown[]): Markup {
  return new Markup(parts.map((part, i) => part + (i < values.length ? escaped(values[i]) : '')).join(''));
}

/** Text of our own, as it is. */
export function raw(text: string): Markup {
  return new Markup(text);
}

function escaped(value: unknown): string {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(escaped).join('');
  return String(value).replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}
