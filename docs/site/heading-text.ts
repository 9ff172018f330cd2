interface Token {
  readonly type: string;
  readonly content: string;
  children: Token[] | null;
}

interface Parser {
  readonly core: {
    readonly ruler: { push(name: string, rule: (state: { readonly tokens: readonly Token[] }) => void): void };
  };
}

/**
 * Headings are linked by their text, including code, as on GitHub. TypeDoc takes the text of a heading from tokens of
 * type `text` and omits code, so this repeats the text of code in a place that only TypeDoc reads.
 */
export function headingText(parser: Parser): void {
  parser.core.ruler.push('heading_text', ({ tokens }) => {
    for (const [index, { type }] of tokens.entries()) {
      if (type !== 'heading_open') continue;
      for (const child of tokens[index + 1]?.children ?? []) {
        if (child.type === 'code_inline') child.children = [{ type: 'text', content: child.content, children: null }];
      }
    }
  });
}
