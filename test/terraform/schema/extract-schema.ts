import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Attribute, Block, NestedBlock, ProviderSchema, Published, Type } from './provider-schema.ts';

/*
 * The packages @cdktf/provider-* are generated from the provider's own schema, one file per type. They have some 300
 * MB: this program extracts the types of a module. Their TypeScript is in the source maps; it shows for every attribute
 * whether it is computed, optional or required, and for every one that can be set whether it is a block.
 */

/** @param folder the unpacked package. */
export function extractSchema(folder: string, { package: name, version, resources, data }: Published): ProviderSchema {
  const description = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
    cdktf: { provider: { name: string; version: string } };
  };
  if (description.name !== name || description.version !== version)
    throw new Error(`${folder} is not ${name} ${version}`);
  const { provider } = description.cdktf;
  const source = provider.name.replace('registry.terraform.io/', '');
  const prefix = `${source.split('/').at(-1)}_`;
  const fileOf = (type: string): string => type.slice(prefix.length).replaceAll('_', '-');
  const blocks = (types: readonly string[], before: string): Record<string, Block> =>
    Object.fromEntries(types.map((type) => [type, readBlock(folder, `${before}${fileOf(type)}`)]));
  return {
    source,
    version: provider.version,
    provider: readBlock(folder, 'provider'),
    resource_schemas: blocks(resources, ''),
    data_source_schemas: blocks(data, `data-${prefix.replace('_', '-')}`),
  };
}

function readBlock(folder: string, file: string): Block {
  const script = readFileSync(join(folder, 'lib', file, 'index.js'), 'utf8');
  const encoded = /sourceMappingURL=data:application\/json;base64,(\S+)/.exec(script)?.[1];
  if (encoded === undefined) throw new Error(`${file} has no source map`);
  const map = JSON.parse(Buffer.from(encoded, 'base64').toString()) as { sourcesContent: string[] };
  const source = new Source(map.sourcesContent[0] ?? '');
  return source.block(source.root());
}

/** Reads the classes of one file. */
class Source {
  readonly #classes: ReadonlyMap<string, { base: string; body: string }>;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    const classes = text.matchAll(/^export class (\w+) extends cdktf\.(\w+) \{\n(.*?)^\}$/gms);
    this.#classes = new Map([...classes].map(([, name = '', base = '', body = '']) => [name, { base, body }]));
  }

  root(): string {
    const found = [...this.#classes].find(([, { base }]) => /^Terraform(Resource|DataSource|Provider)$/.test(base));
    if (found === undefined) throw new Error('no class of a resource');
    return found[0];
  }

  block(name: string): Block {
    const attributes: Record<string, Attribute> = {};
    const blockTypes: Record<string, NestedBlock> = {};
    const body = this.#body(name);
    for (const { field, flags, declared, returned } of fieldsOf(body)) {
      if (this.#isBlock(name, body, field)) blockTypes[field] = this.#nested(declared, flags.required ?? false);
      else attributes[field] = { type: this.#typeOf(declared, returned), ...flags };
    }
    return { attributes, block_types: blockTypes };
  }

  #body(name: string): string {
    const found = this.#classes.get(name);
    if (found === undefined) throw new Error(`no class ${name}`);
    return found.body;
  }

  /** Settable attributes are listed a second time, by the method of a resource or the function of a nested block. */
  #isBlock(name: string, body: string, field: string): boolean {
    const nested = `${name.replace(/OutputReference$/, '')}ToHclTerraform(`;
    const from = body.includes('synthesizeHclAttributes()')
      ? body.slice(body.indexOf('synthesizeHclAttributes()'))
      : this.#text.slice(this.#text.toLowerCase().indexOf(`export function ${nested}`.toLowerCase()));
    const listed = from.slice(0, from.indexOf('\n}'));
    const entry = new RegExp(`^ +${field}: \\{\\n(.*?)^ +\\},$`, 'ms').exec(listed)?.[1];
    return entry?.includes('isBlock: true') ?? false;
  }

  #nested(declared: string, required: boolean): NestedBlock {
    const least = required ? { min_items: 1 } : {};
    // The contents of a provider's blocks are left out: none is allowed.
    if (!declared.includes('= new ')) {
      return { nesting_mode: 'list', ...least, block: { attributes: {}, block_types: {} } };
    }
    const { name, list } = madeBy(declared);
    const block = this.block(`${name}OutputReference`);
    if (list !== undefined) return { nesting_mode: list, ...least, block };
    const single = this.#body(`${name}OutputReference`).includes(
      'super(terraformResource, terraformAttribute, false);',
    );
    return single ? { nesting_mode: 'single', block } : { nesting_mode: 'list', ...least, max_items: 1, block };
  }

  #typeOf(declared: string, returned: string): Type {
    const primitive = (name: string): Type => (name === 'Boolean' ? 'bool' : name.toLowerCase());
    const got = /this\.get(String|Number|Boolean)(List|Map)?Attribute\(/.exec(returned);
    if (got !== null) {
      const [, of = '', shape] = got;
      if (shape === 'Map') return ['map', primitive(of)];
      if (shape === 'List') return [returned.includes('Fn.tolist(') ? 'set' : 'list', primitive(of)];
      return primitive(of);
    }
    if (returned.includes('getListAttribute(')) return [returned.includes('Fn.tolist(') ? 'set' : 'list', 'string'];
    const map = /new cdktf\.(String|Number|Boolean)Map\(/.exec(declared);
    if (map !== null) return ['map', primitive(map[1] ?? '')];
    if (declared.includes('?: { [key: string]: string };')) return ['map', 'string'];
    if (declared.includes('= new ')) return this.#objects(declared);
    const plain = /\?: (string|number|boolean)(\[\])?( \| cdktf\.IResolvable)?;/.exec(declared);
    if (plain === null) throw new Error(`type of: ${declared}`);
    const of = primitive(plain[1] === 'boolean' ? 'Boolean' : (plain[1] ?? ''));
    return plain[2] === undefined ? of : ['list', of];
  }

  /** Objects in an attribute. */
  #objects(declared: string): Type {
    const { name, list } = madeBy(declared);
    const { attributes, block_types: blocks } = this.block(`${name}OutputReference`);
    if (Object.keys(blocks).length > 0) throw new Error(`a block in an attribute: ${name}`);
    const object: Type = [
      'object',
      Object.fromEntries(Object.entries(attributes).map(([key, { type }]) => [key, type])),
    ];
    return list === undefined ? object : [list, object];
  }
}

interface Field {
  readonly field: string;
  readonly flags: Omit<Attribute, 'type'>;
  readonly declared: string;
  readonly returned: string;
}

function fieldsOf(body: string): Field[] {
  const pattern =
    /^ {2}\/\/ (\w+) - computed: (true|false), optional: (true|false), required: (true|false)\n( {2}private .*\n)? {2}public get \w+\(\) \{\n(.*)$/gm;
  const fields = [...body.matchAll(pattern)];
  if (fields.length !== [...body.matchAll(/ - computed: /g)].length) throw new Error('a field in an unknown format');
  return fields.map(([, field = '', computed, optional, required, declared = '', returned = '']) => ({
    field,
    flags: {
      ...(required === 'true' ? { required: true as const } : {}),
      ...(optional === 'true' ? { optional: true as const } : {}),
      ...(computed === 'true' ? { computed: true as const } : {}),
    },
    declared,
    returned,
  }));
}

/** The class that holds a nested block or object, and whether there may be several. */
function madeBy(declared: string): { name: string; list: 'list' | 'set' | undefined } {
  const [, name = '', kind, wrapsSet] =
    /= new (\w+?)(List|OutputReference)\(this, "\w+"(?:, (true|false))?\)/.exec(declared) ?? [];
  if (kind === undefined) throw new Error(`a part of: ${declared}`);
  if (kind === 'OutputReference') return { name, list: undefined };
  return { name, list: wrapsSet === 'true' ? 'set' : 'list' };
}

/** JSON with short values on one line. */
export function laidOut(value: unknown): string {
  return `${lay(value, '')}\n`;
}

function lay(value: unknown, indent: string): string {
  const short = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || (short.length <= 100 && !short.includes('"attributes"')))
    return short;
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((each) => `${inner}${lay(each, inner)}`).join(',\n')}\n${indent}]`;
  const entries = Object.entries(value).map(([name, each]) => `${inner}${JSON.stringify(name)}: ${lay(each, inner)}`);
  return `{\n${entries.join(',\n')}\n${indent}}`;
}
