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
 * Headings are linked by their text, code in them included, as GitHub has it. TypeDoc takes the text of a heading from
 * tokens of type `text` and leaves code out; so code is given its text a second time, where only that looks.
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
