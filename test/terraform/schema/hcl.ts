import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** HashiCorp's own parser, as WebAssembly. Loaded with `require`, because its types would include the whole DOM. */
const parser: {
  parse(file: string, text: string): Promise<Json>;
  getExpressionAst(file: string, expression: string): Promise<Node | null>;
} = require('@cdktf/hcl2json');

type Json = Readonly<Record<string, unknown>>;

/** A value of the parser: text with `${}` for an expression in HCL. */
export type Value = unknown;

/** The content of braces. */
export interface Body {
  readonly attributes: ReadonlyMap<string, Value>;
  readonly blocks: readonly BodyBlock[];
}

export interface BodyBlock {
  readonly type: string;
  readonly labels: readonly string[];
  readonly body: Body;
}

/** How many labels a block has, if any. */
const LABELS: Readonly<Record<string, number>> = {
  resource: 2,
  data: 2,
  variable: 1,
  output: 1,
  module: 1,
  provider: 1,
  dynamic: 1,
  run: 1,
  mock_provider: 1,
  mock_resource: 1,
  mock_data: 1,
};

/** The parser returns the same JSON for a block and a list of objects. So a block without a label gets one. */
const UNLABELLED = '#';

/** @throws if the text is not HCL. */
export async function parseBody(file: string, text: string): Promise<Body> {
  return bodyOf(await parser.parse(file, text.replace(/^([ \t]*\w+)[ \t]*\{/gm, `$1 "${UNLABELLED}" {`)));
}

function bodyOf(json: Json): Body {
  const attributes = new Map<string, Value>();
  const blocks: BodyBlock[] = [];
  for (const [name, value] of Object.entries(json)) {
    const found = blocksOf(name, value);
    if (found === undefined) attributes.set(name, value);
    else blocks.push(...found);
  }
  return { attributes, blocks };
}

function blocksOf(type: string, value: unknown): BodyBlock[] | undefined {
  const labelled = LABELS[type];
  const isBlock = isObject(value) && (labelled !== undefined || UNLABELLED in value);
  if (!isBlock) return undefined;
  const found: BodyBlock[] = [];
  collect(value, labelled ?? 1, []);
  return found;

  function collect(under: unknown, left: number, labels: readonly string[]): void {
    if (left > 0 && isObject(under)) {
      for (const [label, inner] of Object.entries(under)) collect(inner, left - 1, [...labels, label]);
      return;
    }
    for (const body of Array.isArray(under) ? under : []) {
      found.push({ type, labels: labels.filter((label) => label !== UNLABELLED), body: bodyOf(body as Json) });
    }
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Node {
  readonly type: string;
  readonly children: readonly Node[];
  readonly meta?: {
    readonly traversal?: readonly { readonly type: string; readonly segment: string }[];
    readonly keyVar?: string;
    readonly valVar?: string;
  };
}

/** A step of a reference: a name, or `[…]` with any content. */
export type Step = string | typeof INDEX;
export const INDEX = Symbol('[]');

/** `aws_kms_key.this[0].arn` is `['aws_kms_key', 'this', INDEX, 'arn']`. Names of `for` are left out. */
export type Reference = readonly [string, ...Step[]];

/** Every reference in a value. @throws if it contains an expression that is not HCL. */
export async function referencesIn(value: Value): Promise<Reference[]> {
  if (typeof value === 'string') {
    if (!value.includes('${') && !value.includes('%{')) return [];
    // Of all kinds of text, only a heredoc changes nothing but its expressions.
    const tree = await parser.getExpressionAst('expression', `<<HEREDOC\n${value}\nHEREDOC\n`);
    const found: Reference[] = [];
    if (tree !== null) walk(tree, new Set(), found);
    return found;
  }
  if (typeof value !== 'object' || value === null) return [];
  const parts = Array.isArray(value) ? value : Object.entries(value).flat();
  return (await Promise.all(parts.map(referencesIn))).flat();
}

function walk(node: Node, scope: ReadonlySet<string>, found: Reference[]): void {
  const path = pathOf(node, scope, found);
  if (path !== undefined) {
    const [root, ...rest] = path;
    if (typeof root === 'string' && !scope.has(root)) found.push([root, ...rest]);
    return;
  }
  if (node.type !== 'for') {
    for (const child of node.children) walk(child, scope, found);
    return;
  }
  const { keyVar = '', valVar = '' } = node.meta ?? {};
  const [collection, ...rest] = node.children;
  if (collection !== undefined) walk(collection, scope, found);
  for (const child of rest) walk(child, new Set([...scope, keyVar, valVar]), found);
}

/** The reference of a node; the content of its brackets is visited too. */
function pathOf(node: Node, scope: ReadonlySet<string>, found: Reference[]): Step[] | undefined {
  const own = (node.meta?.traversal ?? []).map(({ type, segment }) => (type === 'indexTraversal' ? INDEX : segment));
  if (node.type === 'scopeTraversal') return own;
  const [source, ...rest] = node.children;
  if (source === undefined || !['relativeTraversal', 'index', 'splat', 'parentheses'].includes(node.type))
    return undefined;
  const before = pathOf(source, scope, found);
  if (before === undefined) return undefined;
  if (node.type === 'index') {
    for (const child of rest) walk(child, scope, found);
    return [...before, INDEX];
  }
  if (node.type === 'splat') {
    const each = rest.flatMap((child) => child.meta?.traversal ?? []);
    return [...before, INDEX, ...each.map(({ segment }) => segment)];
  }
  return [...before, ...own];
}
