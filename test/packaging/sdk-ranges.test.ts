import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';
import { publishedFolders } from '../support/tarballs.ts';
import type { Outcome } from './consumer/services.ts';
import { type ConsumerProject, createConsumerProject } from './consumer-project.ts';
import { type EveryService, startEveryService } from './every-service.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const typescript = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'));
}

/** The vendor SDK of a package: its peer besides the packages of this repository. */
const SDKS = publishedFolders()
  .filter((folder) => readFileSync(join(root, 'packages', folder, 'turbo.json'), 'utf8').match(/"(?:adapter|store)"/))
  .flatMap((folder) => {
    const { peerDependencies = {}, devDependencies = {} } = manifestOf(folder);
    return Object.entries(peerDependencies)
      .filter(([name]) => !name.startsWith('@sealring/'))
      .map(([name, range]) => ({ folder, name, range, current: devDependencies[name] ?? '' }));
  });

/** The lowest version of a range, which is the first that the range names. */
const LOWEST = Object.fromEntries(SDKS.map(({ name, range }) => [name, /\d+\.\d+\.\d+/.exec(range)?.[0] ?? '']));

test.each(SDKS)('the peer range of $folder for $name begins at a full version number', ({ folder, name, current }) => {
  expect(manifestOf(folder).dependencies?.[name]).toBeUndefined();
  expect(LOWEST[name]).toMatch(/^\d+\.\d+\.\d+$/);
  // The other end of the range is the version of every other test.
  expect(current).toMatch(/^\^\d/);
});

// With the newest versions, installed.test.ts does the same.
describe('a project with the lowest version of every vendor SDK', () => {
  let project: ConsumerProject;
  let services: EveryService;
  beforeAll(async () => {
    [project, services] = await Promise.all([createConsumerProject(LOWEST), startEveryService(inject('moto'))]);
  });
  afterAll(async () => {
    project?.remove();
    await services?.stop();
  });

  test('npm installs exactly these versions', () => {
    const installed = Object.keys(LOWEST).map((name) => {
      const file = join(project.folder, 'node_modules', name, 'package.json');
      return [name, JSON.parse(readFileSync(file, 'utf8')).version];
    });
    expect(Object.fromEntries(installed)).toEqual(LOWEST);
  });

  test('programs compile, two members share a ring in every store and a key in every KMS, and no stale write succeeds', async () => {
    const options = { module: 'NodeNext', moduleResolution: 'NodeNext', skipLibCheck: true, out: 'built' };
    expect(await project.compile(typescript, options)).toMatchObject({ code: 0, output: '' });
    const list = services.list();
    const env = { ...process.env, ...services.environment, SERVICES: JSON.stringify(list) };
    const { output } = await runProgram(process.execPath, ['built/test/packaging/consumer/services.js'], {
      cwd: project.folder,
      env,
      timeoutMs: 300_000,
    });
    const outcomes: Outcome[] = output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(outcomes).toHaveLength(list.length);
  });

  test('the S3 SDK sends the condition of a write', async () => {
    writeFileSync(join(project.folder, 'condition.mjs'), CONDITION);
    const { output } = await runProgram(process.execPath, ['condition.mjs'], { cwd: project.folder });
    expect(output).toContain('"e"');
  });
});

/** Versions of the SDK that do not know a condition omit it silently, and two writers then overwrite each other. */
const CONDITION = `
import { createServer } from 'node:http';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
const server = createServer((request, response) => {
  console.log(request.headers['if-match']);
  request.resume().on('end', () => response.end());
}).listen(0, '127.0.0.1', async () => {
  const client = new S3Client({
    endpoint: 'http://127.0.0.1:' + server.address().port,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  await client.send(new PutObjectCommand({ Bucket: 'bucket', Key: 'key', Body: 'x', IfMatch: '"e"' }));
  process.exit(0);
});
`;
