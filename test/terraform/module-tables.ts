import { readFileSync, writeFileSync } from 'node:fs';

/** The parts of a module that its README lists. */
interface Block {
  readonly name: string;
  readonly body: string;
}

/** Blocks of a formatted file: each begins and ends at the left margin. */
function blocksOf(source: string, kind: 'variable' | 'output'): Block[] {
  const blocks = [...source.matchAll(new RegExp(`^${kind} "(\\w+)" \\{\\n(.*?)^\\}$`, 'gms'))];
  const heads = source.match(new RegExp(`^${kind} `, 'gm')) ?? [];
  if (blocks.length !== heads.length) throw new Error(`${kind}s are not laid out as terraform fmt does`);
  return blocks.map(({ 1: name = '', 2: body = '' }) => ({ name, body }));
}

/** The expression after `name = ` at the first level of a block. */
function argumentOf({ body }: Block, name: string): string | undefined {
  return new RegExp(`^  ${name} += (.+)$`, 'm').exec(body)?.[1];
}

/** Throws if it is missing: every block must have a description. */
function describe(block: Block): string {
  const described = argumentOf(block, 'description');
  if (described === undefined) throw new Error(`${block.name} has no description`);
  const text: unknown = JSON.parse(described);
  return String(text).replaceAll('|', '\\|');
}

export interface Variable {
  readonly name: string;
  readonly description: string;
  readonly type: string;
  /** HCL; undefined if it is required. */
  readonly default: string | undefined;
  readonly validated: boolean;
}

export function variablesOf(source: string): Variable[] {
  return blocksOf(source, 'variable').map((block) => {
    const type = argumentOf(block, 'type');
    if (type === undefined) throw new Error(`${block.name} has no type`);
    return {
      name: block.name,
      description: describe(block),
      type,
      default: argumentOf(block, 'default'),
      validated: block.body.includes('  validation {'),
    };
  });
}

function variableTable(source: string): string {
  const rows = variablesOf(source).map(
    ({ name, description, type, default: given }) =>
      `| \`${name}\` | ${description} | ${type} | ${given === undefined ? 'required' : `\`${given}\``} |`,
  );
  return ['| variable | meaning | type | default |', '|---|---|---|---|', ...rows].join('\n');
}

function outputTable(source: string): string {
  const rows = blocksOf(source, 'output').map((block) => `| \`${block.name}\` | ${describe(block)} |`);
  return ['| output | meaning |', '|---|---|', ...rows].join('\n');
}

/** A module's README with correct tables; writes it with `SEALRING_WRITE_DOCS=1`. */
export function readmeWithTables(folder: string): string {
  const read = (name: string): string => readFileSync(`${folder}${name}`, 'utf8');
  const variables = withTable(read('README.md'), 'variables', variableTable(read('variables.tf')));
  const written = withTable(variables, 'outputs', outputTable(read('outputs.tf')));
  if (process.env['SEALRING_WRITE_DOCS'] === '1') writeFileSync(`${folder}README.md`, written);
  return written;
}

/** The text with the table between its markers. */
function withTable(text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`no markers for ${name}`);
  return `${text.slice(0, from)}${begin}\n\n${table}\n\n${text.slice(to)}`;
}
