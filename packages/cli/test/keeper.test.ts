import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { hashedKeyId } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { KeeperProcess } from '../../../test/support/keeper-process.ts';
import { HealthServer } from '../src/health/health-server.ts';
import { newProject, runCli } from './cli-process.ts';

const HOUR = 3_600;
/** Times that make a rotation and a repair take seconds. */
const FAST = `policy: { clockSkewSeconds: 0, refreshEverySeconds: 0.5, backoffCapSeconds: 0.5, kmsCheckEverySeconds: 1,
  sealOutageSeconds: 3, storeOutageSeconds: 3, rotateEverySeconds: 60, tokenLifetimeSeconds: 60, missRefreshSeconds: 0 },`;

let project: ReturnType<typeof newProject>;
beforeEach(async () => {
  project = newProject();
  await run(['init', '--local']);
});
afterEach(() => project.remove());

const run = (args: readonly string[]) => runCli(args, { cwd: project.cwd });
const at = (name: string): string => join(project.cwd, name);
const RING = 'sealring.local.ring';
const CONFIG = 'sealring.config.mjs';

/** Adds options to the configuration. */
function configure(options: string, file = CONFIG): void {
  const config = readFileSync(at(CONFIG), 'utf8');
  writeFileSync(at(file), config.replace("ringName: 'local',", `ringName: 'local', ${options}`));
}

/** Creates the ring again, dated this long ago. */
async function agedRing(seconds: number): Promise<void> {
  rmSync(at(RING));
  configure(
    `clock: { wallMs: () => Date.now() - ${seconds * 1_000}, monotonicNs: () => process.hrtime.bigint() },`,
    'past.config.mjs',
  );
  expect((await run(['init', '--config', 'past.config.mjs'])).code).toBe(0);
}

/** The names of the keys in the document. */
function storedKeys(): readonly string[] {
  const { keys } = JSON.parse(readFileSync(at(RING), 'utf8'));
  return keys.map(({ id }: { readonly id: string }) => hashedKeyId(id));
}

describe('keeper --once', () => {
  async function once(): Promise<{
    readonly code: number | null;
    readonly events: readonly Record<string, unknown>[];
  }> {
    const { code, stdout } = await run(['keeper', '--once', '--json']);
    return {
      code,
      events: stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    };
  }

  test('publishes the successor that is due, and no second one', async () => {
    await agedRing(23 * HOUR);
    const [first] = storedKeys();
    const { code, events } = await once();
    const [, second] = storedKeys();
    expect({ code, events }).toMatchObject({
      code: 0,
      events: [
        { event: 'started', ring: 'local', store: at(RING), sealingKey: first },
        { event: 'rotation', key: second, sealsFrom: expect.any(String) },
        { event: 'done', condition: 'ok', lastKmsCheck: expect.any(String) },
      ],
    });
    expect((await once()).events.map(({ event }) => event)).toEqual(['started', 'done']);
    expect(storedKeys()).toHaveLength(2);
  });

  test('changes nothing in a ring where nothing is due', async () => {
    const before = readFileSync(at(RING), 'utf8');
    const { code, stdout, stderr } = await run(['keeper', '--once']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^maintaining ring local in .*\ndone: ok; KMS check passed at .*Z; next rotation at .*Z\n$/);
    expect(readFileSync(at(RING), 'utf8')).toBe(before);
  });

  test('creates a sealing key for a ring whose last key has stopped sealing', async () => {
    await agedRing(31 * HOUR);
    const { code, events } = await once();
    expect({ code, events }).toMatchObject({
      code: 0,
      events: [{ event: 'started' }, { event: 'rotation' }, { event: 'done' }],
    });
    expect(events[0]?.['sealingKey']).toBe(storedKeys()[1]);
  });

  test('exits with 1 if the store has no ring, and does not create one', async () => {
    rmSync(at(RING));
    const { code, events } = await once();
    expect({ code, events }).toMatchObject({ code: 1, events: [{ error: { code: 'ring-absent' } }] });
    expect(existsSync(at(RING))).toBe(false);
  });

  test('reports a problem that needs attention, and exits with 1', async () => {
    const document = JSON.parse(readFileSync(at(RING), 'utf8'));
    const [{ vouchers, wraps, ...times }] = document.keys;
    // A revocation that no key of the ring certifies.
    const revoked = { at: '2026-01-01T00:00:00Z', by: { [times.id]: Buffer.alloc(32, 1).toString('base64url') } };
    writeFileSync(at(RING), JSON.stringify({ ...document, keys: [{ ...times, vouchers, revoked, wraps }] }));
    const { code, events } = await once();
    expect({ code, events }).toMatchObject({
      code: 1,
      events: [
        { event: 'started' },
        { event: 'problem', kind: 'unverified-revocation' },
        { event: 'done', condition: 'attention' },
      ],
    });
  });
});

test('keeper --once ends on SIGTERM with exit code 1 while the KMS does not answer', async () => {
  const text = readFileSync(at(CONFIG), 'utf8');
  const silent = text.replace(
    /keyWrapper: (.*),/,
    "keyWrapper: { ...$1, unwrap: () => { writeFileSync(at('asked'), ''); return new Promise(() => undefined); } },",
  );
  writeFileSync(at(CONFIG), `import { writeFileSync } from 'node:fs';\n${silent}`);
  await using keeper = new KeeperProcess(project.cwd, ['--once']);
  await expect.poll(() => existsSync(at('asked'))).toBe(true);
  expect(await keeper.terminate()).toBe(1);
  expect(keeper.events.map(({ event }) => event)).toEqual(['stopping']);
});

test.each([
  [['keeper'], 0],
  [['keeper', '--once'], 1],
])('%j stops cleanly on a SIGTERM that arrives while its modules are loading', async (args, code) => {
  const hook = `import { registerHooks } from 'node:module';
let isSent = false;
registerHooks({ load(url, context, next) {
  if (!isSent && url.endsWith('/program.js')) process.kill(process.pid, 'SIGTERM');
  isSent ||= url.endsWith('/program.js');
  return next(url, context);
} });`;
  writeFileSync(at('hook.mjs'), hook);
  const env = { NODE_OPTIONS: `--import=${at('hook.mjs')}` };
  const ended = await runCli([...args, '--json'], { cwd: project.cwd, env });
  expect({ ...ended, stdout: JSON.parse(ended.stdout).event }).toEqual({ code, stdout: 'stopping', stderr: '' });
});

test.each([
  [[], 0],
  [['--once'], 1],
])('keeper %j ends on SIGTERM while its configuration is loading', async (args, code) => {
  const text = readFileSync(at(CONFIG), 'utf8');
  const waiting = "writeFileSync('loading', '');\nawait new Promise((resolve) => setTimeout(resolve, 3_600_000));";
  writeFileSync(at(CONFIG), `import { writeFileSync } from 'node:fs';\n${waiting}\n${text}`);
  await using keeper = new KeeperProcess(project.cwd, args);
  await expect.poll(() => existsSync(at('loading'))).toBe(true);
  expect(await keeper.terminate()).toBe(code);
  expect(keeper.events.map(({ event }) => event)).toEqual(['stopping']);
});

test('a health server without a host does not listen', async () => {
  const server = new HealthServer(() => ({ ready: true }));
  await expect(server.listen('', 0)).rejects.toThrow(/--host ""/);
  server.close();
});

describe('keeper', () => {
  test('publishes the successor that is due, and reports it', async () => {
    configure(FAST);
    await agedRing(57);
    await using keeper = new KeeperProcess(project.cwd);
    const { key } = await keeper.reported('rotation', ({ reason }) => reason === 'scheduled');
    expect(storedKeys()).toContain(key);
  });

  test.each([
    ['rolled back', () => copyFileSync(at('old.ring'), at(RING))],
    ['emptied', () => rmSync(at(RING))],
  ])('writes the lost keys back to a store that was %s', async (_, damage) => {
    configure(FAST);
    await agedRing(0);
    copyFileSync(at(RING), at('old.ring'));
    await run(['rotate']);
    const before = storedKeys();
    expect(before).toHaveLength(2);
    await using keeper = new KeeperProcess(project.cwd);
    await keeper.reported('started');
    damage();
    expect(await keeper.reported('repair')).toMatchObject({ keys: 2 });
    expect(storedKeys()).toEqual(before);
  });

  test('reports a revocation, a problem and the end of the problem, with the names of the keys', async () => {
    const wrapper =
      "keyWrapper: refusing(localKeyWrapper({ masterKey: readFileSync(at('sealring.local.key'), 'utf8').trim() })),";
    configure(FAST);
    await agedRing(0);
    // A KMS that unwraps and does not wrap, while this file exists.
    const text = readFileSync(at(CONFIG), 'utf8').replace(/keyWrapper: .*,/, wrapper);
    writeFileSync(
      at(CONFIG),
      `import { existsSync } from 'node:fs';
import { KeyWrapperError } from '@sealring/core';
const refusing = (inner) => ({
  ...inner,
  generate: undefined,
  async wrap(...given) {
    if (existsSync(at('refuse'))) {
      throw new KeyWrapperError('unavailable', { provider: inner.provider, operation: 'wrap' });
    }
    return inner.wrap(...given);
  },
});
${text}`,
    );
    await using keeper = new KeeperProcess(project.cwd);
    await keeper.reported('started');
    const [key] = storedKeys();
    writeFileSync(at('refuse'), '');
    await run(['revoke', '--all', '--yes', '--no-wait']);
    expect(await keeper.reported('revocation')).toMatchObject({ key });
    expect(await keeper.reported('problem')).toMatchObject({ kind: 'no-sealing-key', remedy: expect.any(String) });
    expect(await keeper.reported('status', ({ status }) => status === 'failing')).toBeDefined();
    rmSync(at('refuse'));
    expect(await keeper.reported('problem-ended')).toMatchObject({ kind: 'no-sealing-key' });
    const { key: successor } = await keeper.reported('rotation');
    expect(storedKeys()).toEqual([key, successor]);
    expect(keeper.events.filter(({ event }) => event === 'revocation')).toHaveLength(1);
  });

  test('a keeper exits with 0 after SIGTERM, and its last event reports the stop', async () => {
    await using keeper = new KeeperProcess(project.cwd, ['--health-port', '0']);
    await keeper.reported('started');
    expect(await keeper.terminate()).toBe(0);
    expect(keeper.events.map(({ event }) => event)).toEqual(['health', 'started', 'stopping']);
    expect(keeper.stderr).toBe('');
  });

  test('a keeper closes the ring store and the key wrapper on SIGTERM', async () => {
    const text = readFileSync(at(CONFIG), 'utf8');
    const close = "export const close = () => writeFileSync(at('closed'), '');";
    writeFileSync(at(CONFIG), `import { writeFileSync } from 'node:fs';\n${text}\n${close}\n`);
    await using keeper = new KeeperProcess(project.cwd);
    await keeper.reported('started');
    expect(existsSync(at('closed'))).toBe(false);
    expect(await keeper.terminate()).toBe(0);
    expect(existsSync(at('closed'))).toBe(true);
  });

  test('a keeper that waits for a ring is live at once but not ready, and exits with 0 on SIGTERM', async () => {
    rmSync(at(RING));
    await using keeper = new KeeperProcess(project.cwd, ['--health-port', '0']);
    const { url } = await keeper.reported('health');
    expect(await (await fetch(`${url}/livez`)).text()).toBe('ok');
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, '{"ready":false}']);
    expect(await keeper.terminate()).toBe(0);
  });

  test('fails with cannot-listen if the --health-port is in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    await using keeper = new KeeperProcess(project.cwd, ['--health-port', String(port)]);
    expect(await keeper.ended).toBe(1);
    expect(keeper.stderr).toBe(`error: cannot listen on 127.0.0.1 port ${port}: EADDRINUSE\n`);
    taken.close();
  });

  test.each([[[]], [['--once']]])('a keeper with %j rejects a configuration of a reader', async (args) => {
    configure("role: 'reader',");
    const { code, stderr } = await run(['keeper', ...args]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'error: the keeper publishes keys: the configuration must have role "member"\n',
    });
  });
});
