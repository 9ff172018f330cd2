import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { faultsOfBody } from './check-body.ts';
import { faultOfReference, type World } from './check-references.ts';
import { type Body, type BodyBlock, isObject } from './hcl.ts';
import { TEST_RUN } from './language.ts';
import { parseFolder } from './module.ts';
import { localName } from './provider-schema.ts';
import { referencesOfBody } from './references.ts';

/** What is wrong with the tests of a module, and with the mocks that they use. */
export async function faultsOfTests(world: World): Promise<string[]> {
  const folder = join(world.module.folder, 'tests');
  const mocks = join(folder, 'mocks');
  const bodies = await parseFolder(folder, '.tftest.hcl');
  const mocked = existsSync(mocks) ? await parseFolder(mocks, '.tfmock.hcl') : [];
  const faults = await Promise.all(
    bodies.flatMap((body) => body.blocks.map((block) => faultsOfTestBlock(block, world))),
  );
  return [...faults.flat(), ...mocked.flatMap(({ blocks }) => blocks.flatMap((block) => faultsOfMock(block, world)))];
}

async function faultsOfTestBlock(block: BodyBlock, world: World): Promise<string[]> {
  const { type, labels, body } = block;
  const where = [type, ...labels].join('.');
  const blame = (fault: string): string => `${where}: ${fault}`;
  if (type === 'mock_provider') return labels[0] === localName(world.schema) ? [] : [blame('unknown provider')];
  if (type === 'variables') return faultsOfVariables(body, world).map(blame);
  if (type !== 'run') return [blame('unknown block')];
  const { module } = world;
  const roots = new Set(['run']);
  const plain = {
    ...body,
    blocks: body.blocks.map((inner) => (inner.type === 'variables' ? { ...inner, body: EMPTY } : inner)),
  };
  const faults = faultsOfBody(plain, TEST_RUN);
  for (const inner of body.blocks) if (inner.type === 'variables') faults.push(...faultsOfVariables(inner.body, world));
  for (const { reference } of await referencesOfBody(body, roots, ['command'])) {
    const [root, name] = reference;
    if (root === 'output') {
      if (typeof name !== 'string' || !module.outputs.has(name)) faults.push(`output.${String(name)}: no such output`);
      continue;
    }
    const fault = faultOfReference(reference, world, roots);
    if (fault !== undefined) faults.push(fault);
  }
  return faults.map(blame);
}

const EMPTY: Body = { attributes: new Map(), blocks: [] };

function faultsOfVariables(body: Body, { module }: World): string[] {
  return [...body.attributes.keys()]
    .filter((name) => !module.variables.has(name))
    .map((name) => `unknown variable ${name}`);
}

/** A mock may make up what a type has, and nothing else. */
function faultsOfMock({ type, labels: [label = ''], body }: BodyBlock, { schema }: World): string[] {
  const known = (type === 'mock_data' ? schema.data_source_schemas : schema.resource_schemas)[label];
  if (known === undefined) return [`${type}.${label}: unknown`];
  const defaults = body.attributes.get('defaults');
  const names = isObject(defaults) ? Object.keys(defaults) : [];
  return names.filter((name) => !(name in known.attributes)).map((name) => `${type}.${label}: no attribute ${name}`);
}
