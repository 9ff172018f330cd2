import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
let environment: NodeJS.ProcessEnv = {};
beforeEach(async () => {
  project = newProject();
  const other = newProject();
  await runCli(['init', '--local'], { cwd: other.cwd });
  environment = { SEALRING_RING_NAME: 'local', SEALRING_LOCAL_KEY_FILE: join(other.cwd, 'sealring.local.key') };
  await runCli(['export', join(project.cwd, 'a.ring')], { cwd: other.cwd });
});
afterEach(() => project.remove());

const run = (args: readonly string[], env: NodeJS.ProcessEnv) =>
  runCli(args, { cwd: project.cwd, env: { ...environment, ...env } });

describe('a file as the ring store', () => {
  test.each(['its variable', 'a URL'])('a file is configured as the ring store by %s', async (how) => {
    const path = join(project.cwd, 'a.ring');
    const env =
      how === 'a URL'
        ? { SEALRING_RING_STORE: pathToFileURL(path).href }
        : { SEALRING_RING_STORE: 'file', SEALRING_RING_FILE: path };
    const { code, stdout } = await run(['status', '--json'], env);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ ring: 'local', store: 'file', keys: [{ state: 'active' }] });
    expect((await run(['rotate'], env)).code).toBe(0);
    expect(JSON.parse(readFileSync(path, 'utf8')).keys).toHaveLength(2);
  });
});

test('a start that waits prints one plain line that shows the error of the store', async () => {
  let ended = false;
  const { stderr } = await runCli(['status'], {
    cwd: project.cwd,
    env: { ...environment, SEALRING_RING_STORE: 'redis://127.0.0.1:1' },
    onStderr: (_, child) => {
      ended ||= child.kill();
    },
  });
  expect(stderr).toMatch(/^waiting for ring store redis:\/\/127\.0\.0\.1:1, .*\(ECONNREFUSED\), retrying until .*Z\n$/);
});

describe('a URL of another store', () => {
  test.each([
    ['s3://no-such-bucket.example/payments/a.ring', { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' }, 's3'],
    ['dynamodb://rings', { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1' }, 'dynamodb'],
    ['kubernetes://payments/payments-ring', { KUBECONFIG: '/nonexistent' }, 'kubernetes'],
    ['redis://127.0.0.1:1/3', {}, 'redis'],
    ['postgres://ada@127.0.0.1:1/db', {}, 'postgres'],
  ])('the URL %s selects the store that it names', async (url, more, kind) => {
    const { stdout } = await run(['doctor', '--json'], {
      SEALRING_RING_STORE: url,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_REGION: 'us-east-1',
      ...more,
    });
    const { findings } = JSON.parse(stdout);
    expect(findings).toContainEqual(
      expect.objectContaining({ id: 'store-unavailable', what: expect.stringContaining(`(${kind})`) }),
    );
  });

  test.each([
    'redis://ada:hunter2@127.0.0.1:1/nowhere',
    'postgres://ada:hunter2@127.0.0.1:1/db',
    'mysql://ada:hunter2@127.0.0.1/db',
    'redis://ada:hunter2@[',
  ])('the password in %s is never repeated (F21)', async (url) => {
    const { code, stdout, stderr } = await run(['doctor'], { SEALRING_RING_STORE: url });
    expect(code).toBeGreaterThan(0);
    expect(stdout + stderr).not.toContain('hunter2');
  });
});
