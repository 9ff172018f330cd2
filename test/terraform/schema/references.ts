import { type Body, type BodyBlock, type Reference, referencesIn } from './hcl.ts';

/** A reference, and the names that are defined there: `each`, the label of a dynamic block. */
export interface Found {
  readonly reference: Reference;
  readonly roots: ReadonlySet<string>;
}

/** The references of a block at the left margin. */
export async function referencesOfBlock({ type, body }: BodyBlock): Promise<Found[]> {
  const roots = new Set<string>();
  if (body.attributes.has('for_each')) roots.add('each');
  if (body.attributes.has('count')) roots.add('count');
  // A type is not an expression; a provider is not a resource.
  const left = type === 'variable' ? ['type'] : type === 'resource' || type === 'data' ? ['provider'] : ['providers'];
  return referencesOfBody(body, roots, left);
}

export async function referencesOfBody(
  body: Body,
  roots: ReadonlySet<string>,
  left: readonly string[] = [],
): Promise<Found[]> {
  const found: Found[] = [];
  for (const [name, value] of body.attributes) {
    if (left.includes(name)) continue;
    for (const reference of await referencesIn(value)) found.push({ reference, roots });
  }
  for (const block of body.blocks)
    found.push(...(await referencesOfBody(block.body, rootsIn(block, roots), leftOut(block))));
  return found;
}

function rootsIn({ type, labels, body }: BodyBlock, roots: ReadonlySet<string>): ReadonlySet<string> {
  if (type === 'postcondition') return new Set([...roots, 'self']);
  if (type !== 'dynamic') return roots;
  const iterator = body.attributes.get('iterator') ?? labels[0];
  return typeof iterator === 'string' ? new Set([...roots, iterator.replace(/^\$\{(\w+)\}$/, '$1')]) : roots;
}

function leftOut({ type }: BodyBlock): readonly string[] {
  if (type === 'lifecycle') return ['ignore_changes'];
  return type === 'dynamic' ? ['iterator'] : [];
}
