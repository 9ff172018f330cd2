import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { faultsOfBody } from './check-body.ts';
import { faultOfReference, type World } from './check-references.ts';
import { faultsOfTests } from './check-tests.ts';
import { type Body, type BodyBlock, isObject } from './hcl.ts';
import { asBlock, BLOCKS, META, MODULE_META, merged, PROVIDER_META } from './language.ts';
import { addressOf, loadModule, type Module } from './module.ts';
import { type Block, localName, type ProviderSchema } from './provider-schema.ts';
import { referencesOfBlock } from './references.ts';

/**
 * The defects of a module, its tests included: none if it is valid. Terraform's `validate` reports the same and more,
 * but requires the provider's plugin. A module here has one provider, and calls only modules beside it.
 *
 * @throws as parseFolder.
 */
export async function checkModule(folder: string, schema: ProviderSchema): Promise<string[]> {
  const module = await loadModule(folder);
  const world: World = { module, called: await loadCalled(module), schema };
  const used = new Set<string>();
  const faults: string[] = [];
  for (const block of module.blocks) {
    const address = addressOf(block);
    faults.push(...faultsOfBlock(block, world).map((fault) => `${address}: ${fault}`));
    for (const { reference, roots } of await referencesOfBlock(block)) {
      const fault = faultOfReference(reference, world, roots);
      if (fault !== undefined) faults.push(`${address}: ${fault}`);
      // A variable with only a validation does nothing.
      if (block.type !== 'variable') used.add(reference.slice(0, 2).join('.'));
    }
  }
  faults.push(...twice(module).map((address) => `${address}: declared twice`));
  for (const name of module.variables.keys()) if (!used.has(`var.${name}`)) faults.push(`variable.${name}: unused`);
  for (const name of module.locals) if (!used.has(`local.${name}`)) faults.push(`local.${name}: unused`);
  if (existsSync(join(folder, 'tests'))) faults.push(...(await faultsOfTests(world)));
  return faults;
}

async function loadCalled({ folder, blocks }: Module): Promise<Map<string, Module>> {
  const called = new Map<string, Module>();
  for (const { type, labels, body } of blocks) {
    const source = String(body.attributes.get('source'));
    if (type === 'module' && source.startsWith('.'))
      called.set(labels[0] ?? '', await loadModule(join(folder, source)));
  }
  return called;
}

function faultsOfBlock(block: BodyBlock, world: World): string[] {
  if (block.type === 'locals') return [];
  if (block.type === 'terraform') return faultsOfVersions(block.body, world.schema);
  const schema = schemaOf(block, world);
  return schema === undefined ? [`unknown ${block.type}`] : faultsOfBody(block.body, schema);
}

function schemaOf({ type, labels: [label = ''] }: BodyBlock, { schema, called }: World): Block | undefined {
  const own = (block: Block | undefined, meta: Block): Block | undefined => block && merged(block, meta);
  const callee = called.get(label);
  switch (type) {
    case 'resource':
      return own(schema.resource_schemas[label], META);
    case 'data':
      return own(schema.data_source_schemas[label], META);
    case 'provider':
      return label === localName(schema) ? own(schema.provider, PROVIDER_META) : undefined;
    case 'module':
      return callee && own(asBlock(callee.variables), MODULE_META);
    default:
      return BLOCKS[type];
  }
}

/** The module must require the provider of the schema. */
function faultsOfVersions(body: Body, schema: ProviderSchema): string[] {
  const providers = body.blocks.find(({ type }) => type === 'required_providers')?.body.attributes ?? new Map();
  const asked: unknown = providers.get(localName(schema));
  const [major, minor] = schema.version.split('.');
  const wanted = { source: schema.source, version: `~> ${major}.${minor}` };
  const right = isObject(asked) && asked['source'] === wanted.source && asked['version'] === wanted.version;
  return [
    ...(body.attributes.has('required_version') ? [] : ['no required_version']),
    ...(right && providers.size === 1 ? [] : [`the provider must be ${wanted.source} ${wanted.version}`]),
  ];
}

function twice({ blocks }: Module): string[] {
  const named = blocks.filter(({ labels, type }) => labels.length > 0 && type !== 'provider').map(addressOf);
  return [...new Set(named.filter((address, at) => named.indexOf(address) !== at))];
}
