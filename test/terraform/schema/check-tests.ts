import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { faultsOfBody } from './check-body.ts';
import { faultOfReference, type World } from './check-references.ts';
import { type Body, type BodyBlock, isObject } from './hcl.ts';
import { TEST_RUN } from './language.ts';
import { parseFolder } from './module.ts';
import { localName } from './provider-schema.ts';
import { referencesOfBody } from './references.ts';

/** The defects of a module's tests, and of the mocks that they use. */
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
  const { type, labels } = block;
  const faults = await faultsByType(block, world);
  return faults.map((fault) => `${[type, ...labels].join('.')}: ${fault}`);
}

async function faultsByType({ type, labels, body }: BodyBlock, world: World): Promise<string[]> {
  switch (type) {
    case 'mock_provider':
      if (labels[0] !== localName(world.schema)) return ['unknown provider'];
      return body.blocks.flatMap((mock) => faultsOfMock(mock, world));
    case 'variables':
      return faultsOfVariables(body, world);
    case 'run':
      return faultsOfRun(body, world);
    default:
      return ['unknown block'];
  }
}

async function faultsOfRun(body: Body, world: World): Promise<string[]> {
  const isVariables = ({ type }: BodyBlock): boolean => type === 'variables';
  const faults = faultsOfBody({ ...body, blocks: body.blocks.filter((block) => !isVariables(block)) }, TEST_RUN);
  for (const block of body.blocks.filter(isVariables)) faults.push(...faultsOfVariables(block.body, world));
  // A run may refer to its own results, and to the results of an earlier run.
  for (const { reference } of await referencesOfBody(body, new Set(['run']), ['command'])) {
    const [root, name] = reference;
    const known = root !== 'output' || (typeof name === 'string' && world.module.outputs.has(name));
    const fault = root === 'output' ? undefined : faultOfReference(reference, world, new Set(['run']));
    if (!known) faults.push(`output.${String(name)}: no such output`);
    if (fault !== undefined) faults.push(fault);
  }
  return faults;
}

function faultsOfVariables(body: Body, { module }: World): string[] {
  return [...body.attributes.keys()]
    .filter((name) => !module.variables.has(name))
    .map((name) => `unknown variable ${name}`);
}

/** A mock may set only attributes that a type has. */
function faultsOfMock({ type, labels: [label = ''], body }: BodyBlock, { schema }: World): string[] {
  const known = (type === 'mock_data' ? schema.data_source_schemas : schema.resource_schemas)[label];
  if (known === undefined) return [`${type}.${label}: unknown`];
  const defaults = body.attributes.get('defaults');
  const names = isObject(defaults) ? Object.keys(defaults) : [];
  return names.filter((name) => !(name in known.attributes)).map((name) => `${type}.${label}: no attribute ${name}`);
}
