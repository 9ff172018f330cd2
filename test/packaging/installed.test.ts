import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { MissingPrerequisite } from '../support/python-venv.ts';
import type { Ended } from '../support/run-program.ts';
import { publishedFolders } from '../support/tarballs.ts';
import { exportedValues, reportNameOf } from './api-report.ts';
import type { Outcome } from './consumer/services.ts';
import { type ConsumerProject, createConsumerProject } from './consumer-project.ts';
import { type EveryService, startEveryService } from './every-service.ts';
import { installToolbox, type Toolbox } from './runtimes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const typescript7 = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const NODE_NEXT = { module: 'NodeNext', moduleResolution: 'NodeNext' };
const BUNDLER = { module: 'ESNext', moduleResolution: 'Bundler' };

const toolbox = await toolboxOrNone();
const { runtimes = [], typescript5 = '' } = toolbox ?? {};
const fromSources = runtimes.filter(({ stripsTypes }) => stripsTypes);
/** Run-time exports of each entry point, by the name in an import: `@sealring/core/adapter`. */
const surface = Object.fromEntries(publishedFolders().flatMap(entriesOf));

let project: ConsumerProject;
let services: EveryService;
/** Concurrent, because they mostly wait. */
let mainJobs: readonly Promise<Ended>[] = [];

describe.skipIf(toolbox === undefined)('every tarball installed with the others in a new project', () => {
  beforeAll(async () => {
    [project, services] = await Promise.all([createConsumerProject(), startEveryService(inject('moto'))]);
    const { folder } = project;
    mainJobs = fromSources.map((runtime) => runtime.run('docs/examples/main-job/main.ts', [], { cwd: folder }));
    writeFileSync(join(folder, 'imports.mjs'), programThat('await import'));
    writeFileSync(join(folder, 'requires.cjs'), programThat('require'));
    writeFileSync(join(folder, COMMONJS), FROM_COMMONJS);
    const compiled = await project.compile(typescript7, { ...NODE_NEXT, skipLibCheck: false, out: 'built' });
    if (compiled.code !== 0) throw new Error(compiled.output);
    // Only NodeNext allows this import of a module.
    rmSync(join(folder, COMMONJS));
  });
  afterAll(async () => {
    await Promise.all(mainJobs);
    project?.remove();
    await services?.stop();
  });

  describe.concurrent.each(runtimes)('on $title', (runtime) => {
    const run = (program: string, env: NodeJS.ProcessEnv = {}) =>
      runtime.run(program, [], { cwd: project.folder, env: { ...process.env, ...env } });

    test.each(['imports.mjs', 'requires.cjs'])('%s imports every export that the API reports list', async (program) => {
      const { output } = await run(program);
      const found: Record<string, string[]> = JSON.parse(linesOf(output).at(-1) ?? `nothing: ${output}`);
      expect(found).toEqual(surface);
    });

    test('a CommonJS module in TypeScript seals and unseals', async () => {
      const { code, output } = await run('built/test/packaging/consumer/from-commonjs.cjs');
      expect(output).toContain('from CommonJS\n');
      expect(code).toBe(0);
    });

    test('two servers accept the state of a client, and refuse forged states', async () => {
      const { code, output } = await run('built/docs/examples/refund/main.js');
      expect(output).toMatch(/every step succeeded/);
      expect(code).toBe(0);
    });

    test('two members share a ring through every store, and a key through every KMS', async () => {
      // @kubernetes/client-node 2 needs Node 22.19.
      const isOld = /^Node (?:20|22\.12)\./.test(runtime.title);
      const list = services.list().filter(({ kind }) => !isOld || kind !== 'kubernetes');
      const env = { ...services.environment, SERVICES: JSON.stringify(list) };
      const { code, output } = await run('built/test/packaging/consumer/services.js', env);
      const outcomes: Outcome[] = linesOf(output).map((line) => JSON.parse(line));
      expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(outcomes.length).toBe(list.length);
      expect(code).toBe(0);
    });
  });

  test.each(fromSources.filter(({ title }) => !title.startsWith('Node')))(
    '$title: the conformance kit reports only the findings that the page lists',
    async (runtime) => {
      const { output } = await runtime.run('test/packaging/consumer/kit.ts', [], { cwd: project.folder });
      const others = runtime.title.startsWith('Bun') ? ['CODEC-NO-GLOBALS'] : [];
      expect(JSON.parse(linesOf(output).at(-1) ?? 'null')).toMatchObject({ passed: true, others });
    },
  );

  test.each([
    ['TypeScript 5.9, NodeNext, every declaration', typescript5, { ...NODE_NEXT, skipLibCheck: false }],
    ['TypeScript 5.9, Bundler', typescript5, { ...BUNDLER, skipLibCheck: true }],
    ['TypeScript 7, Bundler', typescript7, { ...BUNDLER, skipLibCheck: true }],
  ])('a project compiles with %s', async (_title, tsc, setup) => {
    const { code, output } = await project.compile(tsc, setup);
    expect(output).toBe('');
    expect(code).toBe(0);
  });

  test.each(fromSources.map(({ title }, index) => [title, index] as const))(
    '%s: the main job runs from its sources, with its servers in separate processes',
    async (_title, index) => {
      const { code, output } = (await mainJobs[index]) ?? { code: 'never started', output: '' };
      expect(output).toMatch(/✓ every step succeeded/);
      expect(code).toBe(0);
    },
  );
});

async function toolboxOrNone(): Promise<Toolbox | undefined> {
  try {
    return await installToolbox();
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
}

function entriesOf(folder: string): [string, string[]][] {
  const path = join(root, 'packages', folder);
  const { name, exports }: { name: string; exports: object } = JSON.parse(
    readFileSync(join(path, 'package.json'), 'utf8'),
  );
  return Object.keys(exports).flatMap((entry) => {
    const report = join(path, reportNameOf(entry));
    // packaging.test.ts checks that there is one.
    return existsSync(report) ? [[join(name, entry), exportedValues(readFileSync(report, 'utf8'))]] : [];
  });
}

/** Prints the named exports of every entry point; `require` may add its own marks. */
function programThat(loads: 'await import' | 'require'): string {
  return `
const found = {};
for (const name of ${JSON.stringify(Object.keys(surface))}) {
  const marks = ['__esModule', 'module.exports', 'default'];
  found[name] = Object.keys(${loads}(name)).filter((value) => !marks.includes(value)).sort();
}
console.log(JSON.stringify(found));
`;
}

const COMMONJS = 'test/packaging/consumer/from-commonjs.cts';

/** Source of a CommonJS module: not a file of this repository, where only erasable syntax is allowed. */
const FROM_COMMONJS = `
import core = require('@sealring/core');
const codec: core.RequestStateCodec = new core.AesGcmRequestStateCodec([crypto.getRandomValues(new Uint8Array(32))]);
console.log(new TextDecoder().decode(codec.unseal(codec.seal(new TextEncoder().encode('from CommonJS')))));
`;

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line.startsWith('{'));
}
