import { parseSync, Visitor } from 'oxc-parser';

// Plugins of textlint that read prose outside Markdown: comments and messages of a source file, the titles of a test
// file, comments and strings of Python, Terraform, YAML and JSON, and the text of an SVG picture. Each becomes a
// paragraph that keeps its place in the file.

/** Code within prose: `code`, {@link name}, the example of a doc comment, and an id such as CODEC-OPENS. */
const CODE = /```[^]*?```|`[^`\n]*`|\{@[^}]*\}|@\w+|\b[A-Z]+(?:-[A-Z0-9]+)+\b/g;
/** A code block of several lines contains the stars of the comment. */
const STAR = /^[\t ]*\*(?: |$)/gm;
const TAG = /<\/?[a-z!][^<>]*>?|[^<>]*"\/?>/gi;
const TITLED = new Set(['test', 'it', 'describe', 'suite', 'bench']);

class Page {
  #lines = [0];
  #text;
  #paragraphs = [];

  constructor(text) {
    this.#text = text;
    for (const { index } of text.matchAll(/\n/g)) this.#lines.push(index + 1);
  }

  /** Adds the text from `start` to `end`; `code` matches code within it, and `blank` markup to skip. */
  add(start, end, { code = CODE, blank } = {}) {
    const source = this.#text.slice(start, end);
    const holes = [...matches(source, code, 'Code'), ...matches(source, blank, undefined)].toSorted(
      (a, b) => a.from - b.from,
    );
    const children = [];
    let at = 0;
    for (const { from, to, type } of holes) {
      if (from < at) continue;
      if (from > at) children.push(this.#node('Str', start + at, start + from));
      if (type !== undefined) children.push(this.#node(type, start + from, start + to));
      at = to;
    }
    if (at < source.length) children.push(this.#node('Str', start + at, end));
    this.#paragraphs.push({ ...this.#node('Paragraph', start, end), children });
  }

  get document() {
    const children = this.#paragraphs.toSorted((a, b) => a.range[0] - b.range[0]);
    return { ...this.#node('Document', 0, this.#text.length), children };
  }

  #node(type, start, end) {
    const loc = { start: this.#place(start), end: this.#place(end) };
    const raw = this.#text.slice(start, end);
    return { type, raw, range: [start, end], loc, ...(type === 'Str' || type === 'Code' ? { value: raw } : {}) };
  }

  #place(index) {
    let [low, high] = [0, this.#lines.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#lines[middle] <= index) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: index - this.#lines[low] };
  }
}

function matches(text, pattern, type) {
  if (pattern === undefined) return [];
  return [...text.matchAll(pattern)].map(({ 0: found, index }) => ({ from: index, to: index + found.length, type }));
}

/** Must have at least two words, and must not be a program: a single word is a name or a value of the API. */
function isMessage(text) {
  return /[a-z]\S* +\S/i.test(text) && !/[;{]\n/.test(text);
}

function readSource(text, filePath) {
  const page = new Page(text);
  const { program, comments, errors } = parseSync(filePath, text);
  if (errors.length > 0) throw new Error(`${filePath}: ${errors[0].message}`);
  const isTest = /(?:^|\/)test\//.test(filePath);
  const literal = ({ start, end, type, quasis }) => {
    if (type === 'Literal') page.add(start + 1, end - 1, { code: CODE });
    else if (type === 'TemplateLiteral') {
      for (const quasi of quasis) if (/[a-z]/i.test(quasi.value.raw)) page.add(quasi.start, quasi.end, { blank: TAG });
    }
  };
  if (isTest) {
    new Visitor({
      CallExpression({ callee, arguments: [title] }) {
        if (title !== undefined && TITLED.has(calledName(callee))) literal(title);
      },
    }).visit(program);
    return page.document;
  }
  new Visitor({
    Literal(node) {
      if (typeof node.value === 'string' && isMessage(node.value)) literal(node);
    },
    TemplateLiteral(node) {
      if (isMessage(node.quasis.map(({ value }) => value.raw).join('x'))) literal(node);
    },
  }).visit(program);
  // Comments that give a reason in the code are prose too.
  for (const { start, end, type } of comments) {
    if (type === 'Block') page.add(start + 2, end - 2, { blank: STAR });
    else page.add(start + 2, end);
  }
  return page.document;
}

/** `test` of `test(…)`, `test.skipIf(…)(…)` and `test.each(…)(…)`. */
function calledName(callee) {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return calledName(callee.object);
  return callee.type === 'CallExpression' ? calledName(callee.callee) : undefined;
}

/** Comments, strings, and unquoted descriptions of YAML. */
const TEXTS = /#.*$|"""[^]*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?<=^ *(?:description|summary): )[^"'\n].*$/gm;
/** Code in a docstring, and a value within a text. */
const CODE_OR_VALUE = new RegExp(String.raw`\`\`[^\`]*\`\`|\$?\{[^}]*\}|${CODE.source}`, CODE.flags);

function readScript(text) {
  const page = new Page(text);
  for (const { 0: found, index } of text.matchAll(TEXTS)) {
    if (isMessage(found)) page.add(index, index + found.length, { code: CODE_OR_VALUE });
  }
  return page.document;
}

function readPicture(text) {
  const page = new Page(text);
  for (const { 0: found, index } of text.matchAll(/>[^<]*[a-z][^<]*</gi)) {
    page.add(index + 1, index + found.length - 1);
  }
  return page.document;
}

function pluginOf(extensions, read) {
  class Processor {
    availableExtensions() {
      return extensions;
    }

    processor() {
      return {
        preProcess: (text, filePath) => read(text, filePath),
        postProcess: (messages, filePath) => ({ messages, filePath }),
      };
    }
  }
  return { Processor };
}

export const plugins = [
  { pluginId: 'source', plugin: pluginOf(['.ts', '.mjs'], readSource) },
  { pluginId: 'script', plugin: pluginOf(['.py', '.tf', '.hcl', '.json', '.yml', '.yaml'], readScript) },
  { pluginId: 'picture', plugin: pluginOf(['.svg'], readPicture) },
];
