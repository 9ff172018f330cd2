import { type Body, type BodyBlock, isObject, type Value } from './hcl.ts';
import type { Attribute, Block, Type } from './provider-schema.ts';

/** The parts of a body that its schema does not allow, and the missing ones. */
export function faultsOfBody(body: Body, schema: Block): string[] {
  const given = body.blocks.map(nameAndContent);
  return [
    ...[...body.attributes].flatMap(([name, value]) => faultsOfAttribute(name, value, schema)),
    ...given.flatMap(({ name, content }) => faultsOfBlock(name, content, schema)),
    ...missing(body, given, schema),
  ];
}

interface Given {
  readonly name: string;
  readonly content: Body;
  /** Whether the block comes from `dynamic`, so that the number of blocks is unknown. */
  readonly dynamic: boolean;
}

function nameAndContent({ type, labels, body }: BodyBlock): Given {
  if (type !== 'dynamic') return { name: type, content: body, dynamic: false };
  const content = body.blocks.find((block) => block.type === 'content')?.body;
  return { name: labels[0] ?? '', content: content ?? { attributes: new Map(), blocks: [] }, dynamic: true };
}

function faultsOfAttribute(name: string, value: Value, schema: Block): string[] {
  const attribute = schema.attributes[name];
  if (attribute !== undefined) {
    if (isOnlyComputed(attribute)) return [`${name} is computed only`];
    return fits(value, attribute.type) ? [] : [`${name} is a ${nameOf(attribute.type)}`];
  }
  return [name in schema.block_types ? `${name} is a block` : `unknown attribute ${name}`];
}

function faultsOfBlock(name: string, content: Body, schema: Block): string[] {
  const nested = schema.block_types[name];
  if (nested !== undefined) return faultsOfBody(content, nested.block).map((fault) => `${name}: ${fault}`);
  return [name in schema.attributes ? `${name} is an attribute` : `unknown block ${name}`];
}

function missing(body: Body, given: readonly Given[], schema: Block): string[] {
  const faults = Object.entries(schema.attributes)
    .filter(([name, { required }]) => required === true && !body.attributes.has(name))
    .map(([name]) => `no ${name}`);
  for (const [name, { nesting_mode: mode, min_items: least = 0, max_items: most }] of Object.entries(
    schema.block_types,
  )) {
    const found = given.filter((block) => block.name === name);
    if (found.some(({ dynamic }) => dynamic)) continue;
    if (found.length < least) faults.push(`no ${name}`);
    if (found.length > (most ?? (mode === 'single' ? 1 : Number.POSITIVE_INFINITY)))
      faults.push(`more than one ${name}`);
  }
  return faults;
}

function isOnlyComputed({ required, optional, computed }: Attribute): boolean {
  return computed === true && required !== true && optional !== true;
}

/** Whether a literal has the shape of the type; the value of an expression is not known. */
function fits(value: Value, type: Type): boolean {
  if (type === 'dynamic' || value === null) return true;
  if (typeof value === 'string' && value.includes('${')) return true;
  if (isObject(value)) return nameOf(type) === 'map' || nameOf(type) === 'object';
  if (Array.isArray(value)) return nameOf(type) === 'list' || nameOf(type) === 'set';
  if (typeof value === 'string') return type === 'string';
  if (typeof value === 'number') return type === 'number' || type === 'string';
  return type === 'bool';
}

function nameOf(type: Type): string {
  return typeof type === 'string' ? type : type[0];
}
