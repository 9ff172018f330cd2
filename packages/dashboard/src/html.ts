/** Safe markup: the result of {@link html}. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Value = Html | string | number | undefined | readonly Html[];

/**
 * Joins markup and values. Values that are not markup are escaped, so that they are safe in content and in quoted
 * attributes.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.map((part, index) => part + textOf(values[index])).join(''));
}

function textOf(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.toString();
  if (Array.isArray(value)) return value.join('');
  return String(value).replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
