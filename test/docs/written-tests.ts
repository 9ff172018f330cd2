import { parseAst } from 'vitest/node';

/** A test as written in a file. */
export interface WrittenTest {
  /** The title as in the source, with `%s`, `$name` or `${…}` where a value is filled in. */
  readonly title: string;
  /** Whether it never runs, or must fail: `.skip`, `.todo` or `.fails`, its own or of a `describe` around it. */
  readonly isIdle: boolean;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Call extends Node {
  readonly callee: Node;
  readonly arguments: readonly Node[];
}

const IDLE = new Set(['skip', 'todo', 'fails']);

/** All tests of a TypeScript source. Titles that are computed at run time are left out. */
export function writtenTests(source: string): readonly WrittenTest[] {
  const found: WrittenTest[] = [];
  const walk = (value: unknown, isAroundIdle: boolean): void => {
    if (Array.isArray(value)) {
      for (const each of value) walk(each, isAroundIdle);
      return;
    }
    if (!isNode(value)) return;
    const call = isCall(value) ? testCall(value) : undefined;
    const isIdle = isAroundIdle || (call?.words.some((word) => IDLE.has(word)) ?? false);
    if (call !== undefined && call.words[0] !== 'describe') {
      const title = titleOf(call.title, source);
      if (title !== undefined) found.push({ title, isIdle });
    }
    for (const [name, child] of Object.entries(value)) if (name !== 'parent') walk(child, isIdle);
  };
  walk(parseAst(source, { lang: 'ts' }), false);
  return found;
}

/** `test.each(…)(title, …)`: the names in the call chain, first to last, with options that are set. */
function testCall(call: Call): { readonly words: readonly string[]; readonly title: Node } | undefined {
  const words: string[] = [];
  let called: unknown = call.callee;
  for (;;) {
    if (!isNode(called)) return undefined;
    if (called.type === 'MemberExpression') {
      const { object, property } = called as Node & { readonly object: unknown; readonly property: { name?: string } };
      words.unshift(property.name ?? '');
      called = object;
    } else if (isCall(called)) called = called.callee;
    else break;
  }
  const { name } = called as Node & { readonly name?: string };
  const [title, second] = call.arguments;
  if (title === undefined || !['test', 'it', 'describe'].includes(name ?? '')) return undefined;
  return { words: [name ?? '', ...words, ...optionsSet(second)], title };
}

/** `{ skip: true }`: the names. */
function optionsSet(options: Node | undefined): readonly string[] {
  if (options?.type !== 'ObjectExpression') return [];
  const { properties } = options as Node & {
    readonly properties: readonly { key?: { name?: string }; value?: { value?: unknown } }[];
  };
  return properties.filter(({ value }) => value?.value === true).map(({ key }) => key?.name ?? '');
}

function titleOf(node: Node, source: string): string | undefined {
  const { value } = node as Node & { readonly value?: unknown };
  if (node.type === 'Literal' && typeof value === 'string') return value;
  return node.type === 'TemplateLiteral' ? source.slice(node.start + 1, node.end - 1) : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function isCall(node: Node): node is Call {
  return node.type === 'CallExpression';
}
