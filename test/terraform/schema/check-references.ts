import { INDEX, type Reference, type Step } from './hcl.ts';
import type { Module } from './module.ts';
import type { Block, ProviderSchema, Type } from './provider-schema.ts';

/** The targets of references: a module, the modules that it calls, and the attributes of its provider's types. */
export interface World {
  readonly module: Module;
  /** Keyed by the name of the call. */
  readonly called: ReadonlyMap<string, Module>;
  readonly schema: ProviderSchema;
}

/** @param roots names that are defined here: `each`, `count`, the label of a dynamic block. */
export function faultOfReference(reference: Reference, world: World, roots: ReadonlySet<string>): string | undefined {
  const fault = follow(reference, world, roots);
  return fault === undefined ? undefined : `${textOf(reference)}: ${fault}`;
}

function follow([root, ...steps]: Reference, world: World, roots: ReadonlySet<string>): string | undefined {
  const { module, called, schema } = world;
  const [name, ...rest] = steps;
  const declared = (names: { has(name: string): boolean }, kind: string): string | undefined =>
    typeof name === 'string' && names.has(name) ? undefined : `no such ${kind}`;
  if (roots.has(root) || root === 'path' || root === 'terraform') return undefined;
  switch (root) {
    case 'var':
      return declared(module.variables, 'variable');
    case 'local':
      return declared(module.locals, 'local');
    case 'module': {
      const outputs = called.get(String(name))?.outputs;
      const output = rest.find((step) => step !== INDEX);
      if (outputs === undefined) return 'no such module';
      return output === undefined || outputs.has(output) ? undefined : 'no such output';
    }
    case 'data':
      return followResource(
        module,
        `data.${textOf(steps.slice(0, 2))}`,
        schema.data_source_schemas[String(name)],
        rest.slice(1),
      );
    default:
      return followResource(module, textOf([root, ...steps.slice(0, 1)]), schema.resource_schemas[root], rest);
  }
}

function followResource(
  { addresses }: Module,
  address: string,
  schema: Block | undefined,
  steps: readonly Step[],
): string | undefined {
  const resource = addresses.get(address);
  if (resource === undefined) return 'not declared';
  if (schema === undefined || steps.length === 0) return undefined;
  const several = resource.body.attributes.has('count') || resource.body.attributes.has('for_each');
  const [first, ...rest] = steps;
  if ((first === INDEX) !== several) return several ? 'there are several: which?' : 'there is only one';
  return followBlock(schema, several ? rest : steps);
}

function followBlock(schema: Block, steps: readonly Step[]): string | undefined {
  const [name, ...rest] = steps;
  if (name === undefined) return undefined;
  if (name === INDEX) return 'not a list';
  const attribute = schema.attributes[name];
  if (attribute !== undefined) return followType(attribute.type, rest);
  const nested = schema.block_types[name];
  if (nested === undefined) return `no attribute ${name}`;
  if (nested.nesting_mode === 'single' || rest.length === 0) return followBlock(nested.block, rest);
  return rest[0] === INDEX ? followBlock(nested.block, rest.slice(1)) : `${name} is a list`;
}

function followType(type: Type, steps: readonly Step[]): string | undefined {
  const [step, ...rest] = steps;
  if (step === undefined || type === 'dynamic') return undefined;
  if (typeof type === 'string') return `nothing in a ${type}`;
  if (type[0] === 'object') {
    if (step === INDEX) return undefined;
    const inner = type[1][step];
    return inner === undefined ? `no attribute ${step}` : followType(inner, rest);
  }
  if (type[0] !== 'map' && step !== INDEX) return `a ${type[0]} has no ${step}`;
  return followType(type[1], rest);
}

function textOf(steps: readonly Step[]): string {
  return steps
    .map((step) => (step === INDEX ? '[]' : step))
    .join('.')
    .replaceAll('.[]', '[]');
}
