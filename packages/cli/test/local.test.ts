import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKmsCodec, fileRing, hashedKeyId, localKeyWrapper } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
const run = (args: readonly string[], more: { readonly input?: string } = {}) =>
  runCli(args, { cwd: project.cwd, ...more });
const secretOf = (): string => readFileSync(join(project.cwd, 'sealring.local.key'), 'utf8').trim();

beforeEach(() => {
  project = newProject();
});
afterEach(() => project.remove());

async function statusOf(): Promise<{
  readonly sealingKey: string;
  readonly keys: readonly { readonly name: string; readonly id: string; readonly state: string }[];
}> {
  const { code, stdout, stderr } = await run(['status', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

async function seal(payload: string): Promise<string> {
  await using codec = await createKmsCodec({
    ringName: 'local',
    ring: fileRing(join(project.cwd, 'sealring.local.ring')),
    keyWrapper: localKeyWrapper({ masterKey: secretOf() }),
  });
  return codec.seal(new TextEncoder().encode(payload));
}

describe('init --local', () => {
  test('writes a key that only its owner can read, a configuration and a ring, and prints no secret', async () => {
    const { code, stdout, stderr } = await run(['init', '--local']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('created the ring; published key');
    expect(statSync(join(project.cwd, 'sealring.local.key')).mode & 0o777).toBe(0o600);
    expect(Buffer.from(secretOf(), 'base64url')).toHaveLength(32);
    expect(stdout + stderr).not.toContain(secretOf());
    expect((await statusOf()).keys.map(({ state }) => state)).toEqual(['active']);
  });

  test('leaves no key behind if it cannot write the configuration', async () => {
    symlinkSync(join(project.cwd, 'elsewhere'), join(project.cwd, 'sealring.config.mjs'));
    const { code, stderr } = await run(['init', '--local']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/sealring\.config\.mjs.* already exists/);
    expect(readdirSync(project.cwd)).not.toContain('sealring.local.key');
  });

  test.skipIf(process.platform !== 'linux')('names the file that it cannot create in a folder', async () => {
    const { code, stderr } = await runCli(['init', '--local'], { cwd: '/proc' });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^error: cannot write "sealring\.local\.key" \(E[A-Z]+\)\n$/),
    });
  });

  test('overwrites no file', async () => {
    writeFileSync(join(project.cwd, 'sealring.local.key'), 'mine');
    const { code, stderr } = await run(['init', '--local']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/sealring\.local\.key already exists/);
    expect(readdirSync(project.cwd).toSorted()).toEqual(['node_modules', 'sealring.local.key']);
    expect(readFileSync(join(project.cwd, 'sealring.local.key'), 'utf8')).toBe('mine');
  });

  test('a second init leaves the ring unchanged and exits with 0', async () => {
    await run(['init', '--local']);
    const before = await statusOf();
    const { code, stdout } = await run(['init']);
    expect(code).toBe(0);
    expect(stdout).toContain('the ring already exists; it was not changed');
    expect((await statusOf()).keys).toEqual(before.keys);
  });
});

describe('commands on a local ring', () => {
  beforeEach(async () => {
    await run(['init', '--local']);
  });

  test('the doctor reports no errors, prints no secret, and uses no colours outside a terminal', async () => {
    const { code, stdout, stderr } = await run(['doctor']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('0 errors, 0 warnings');
    expect(stdout).not.toContain(String.fromCharCode(27));
    expect(stdout).not.toContain(secretOf());
    const json = await run(['doctor', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ healthy: true, ring: 'local', origin: 'sealring.config.mjs' });
  });

  test('the doctor reports a ring name that is not text as an invalid option', async () => {
    const config = join(project.cwd, 'sealring.config.mjs');
    writeFileSync(config, readFileSync(config, 'utf8').replace("ringName: 'local'", 'ringName: 5'));
    const { code, stdout, stderr } = await run(['doctor']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/ERROR .*ringName must be .*\[options\]/);
  });

  test('the doctor writes nothing', async () => {
    const files = (): readonly (readonly [string, string, number])[] =>
      readdirSync(project.cwd)
        .map((name) => join(project.cwd, name))
        .filter((path) => statSync(path).isFile())
        .map((path) => [path, readFileSync(path, 'latin1'), statSync(path).mtimeMs] as const);
    const before = files();
    expect(before.length).toBeGreaterThan(2);
    expect((await run(['doctor'])).code).toBe(0);
    expect(files()).toEqual(before);
  });

  test('the doctor exits with 1 for an error and prints the remedy', async () => {
    const config = join(project.cwd, 'sealring.config.mjs');
    writeFileSync(config, readFileSync(config, 'utf8').replace("ringName: 'local'", "ringName: 'other'"));
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/ERROR .*named "local".*\[ring-other-name\]\n +→ Set ringName/);
  });

  test('status shows the keys on a timeline', async () => {
    const { code, stdout } = await run(['status']);
    expect(code).toBe(0);
    const { sealingKey } = await statusOf();
    expect(stdout).toMatch(new RegExp(`^${sealingKey}  active .*\\|#+-+$`, 'm'));
    expect(stdout).toContain('next rotation due');
  });

  test('status --watch shows a rotation by another process, and ends when it is interrupted', async () => {
    let isRotating = false;
    const { code, stdout } = await runCli(['status', '--watch', '1', '--json'], {
      cwd: project.cwd,
      onStdout(text, child) {
        if (!isRotating) {
          isRotating = true;
          void run(['rotate']);
        }
        if (text.includes('"propagating"')) child.kill('SIGINT');
      },
    });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(JSON.parse(lines[0] ?? '').keys).toHaveLength(1);
    expect(JSON.parse(lines.at(-1) ?? '').keys).toHaveLength(2);
  });

  test('status --watch continues while the store fails, and prints a note', async () => {
    const { code, stdout, stderr } = await runCli(['status', '--watch', '1', '--json'], {
      cwd: project.cwd,
      onStdout(text, child) {
        writeFileSync(join(project.cwd, 'sealring.local.ring'), 'no ring');
        if (text.split('\n').length > 3) child.kill('SIGINT');
      },
    });
    expect(code).toBe(0);
    expect(stderr).toMatch(/^note: reading the ring: the ring store: corrupt/);
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '').keys).toHaveLength(1);
  });

  test('rotate publishes a successor that seals after a delay, which --emergency shortens', async () => {
    const activatesOf = async (args: readonly string[]): Promise<number> => {
      const { code, stdout } = await run(['rotate', '--json', ...args]);
      expect(code).toBe(0);
      const keys: { activates: string; created: string; state: string }[] = JSON.parse(stdout).keys;
      const made = keys.toSorted((a, b) => a.created.localeCompare(b.created)).at(-1);
      expect(made?.state).toBe('propagating');
      return Date.parse(made?.activates ?? '') - Date.parse(made?.created ?? '');
    };
    const sooner = await activatesOf(['--emergency']);
    expect(sooner).toBeLessThan(15 * 60_000);
    expect((await statusOf()).keys).toHaveLength(2);
  });

  test('revoke permanently revokes a key, and its successor seals at once', async () => {
    const { sealingKey } = await statusOf();
    const { code, stdout } = await run(['revoke', '--yes', '--no-wait', '--json', '--', sealingKey]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ revoked: [sealingKey], waited: false });
    const after = await statusOf();
    expect(after.keys.find(({ name }) => name === sealingKey)?.state).toBe('revoked');
    expect(after.sealingKey).not.toBe(sealingKey);
  });

  test('revoke --before revokes every older key', async () => {
    const later = new Date(Date.now() + 60_000).toISOString();
    const { code } = await run(['revoke', '--yes', '--no-wait', '--before', later]);
    expect(code).toBe(0);
    expect((await statusOf()).keys.map(({ state }) => state).toSorted()).toEqual(['active', 'revoked']);
  });

  test('revoke --all revokes every key, even one that is propagating, and publishes a successor', async () => {
    await run(['rotate']);
    const before = await statusOf();
    const { code, stdout } = await run(['revoke', '--all', '--yes', '--no-wait', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).revoked.toSorted()).toEqual(before.keys.map(({ name }) => name).toSorted());
    const after = await statusOf();
    expect(after.keys.map(({ state }) => state).toSorted()).toEqual(['active', 'revoked', 'revoked']);
    expect(before.keys.map(({ name }) => name)).not.toContain(after.sealingKey);
  });

  test('revoke waits and prints its progress, and exits with 1 when it is interrupted', async () => {
    const { sealingKey } = await statusOf();
    const { code, stdout, stderr } = await runCli(['revoke', '--yes', '--', sealingKey], {
      cwd: project.cwd,
      onStderr(text, child) {
        if (/waiting.*\n$/.test(text)) child.kill('SIGINT');
      },
    });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^revoked; waiting until the store has kept it: \d of 360 s\nerror: .*sealring status/);
    expect((await statusOf()).keys.map(({ state }) => state).toSorted()).toEqual(['active', 'revoked']);
  });

  test('revoke writes the revocation again if an older copy of the ring overwrites it', async () => {
    const ring = join(project.cwd, 'sealring.local.ring');
    const old = readFileSync(ring, 'utf8');
    let wasRolledBack = false;
    let isWatching = false;
    const { code, stderr } = await runCli(['revoke', '--all', '--yes'], {
      cwd: project.cwd,
      onStderr(text, child) {
        if (!wasRolledBack) {
          wasRolledBack = true;
          writeFileSync(ring, old);
        }
        if (isWatching || !text.includes('lost the revocation')) return;
        isWatching = true;
        const isBack = (): boolean => readFileSync(ring, 'utf8').includes('"revoked":');
        const timer = setInterval(() => {
          if (!isBack()) return;
          clearInterval(timer);
          child.kill('SIGINT');
        }, 100);
      },
    });
    expect(stderr).toContain('the store lost the revocation: writing it again and restarting the wait');
    expect(code).toBe(1);
    expect((await statusOf()).keys.map(({ state }) => state).toSorted()).toEqual(['active', 'revoked']);
  });

  test('status and the doctor report a revocation without a valid certificate', async () => {
    const ring = join(project.cwd, 'sealring.local.ring');
    const document = JSON.parse(readFileSync(ring, 'utf8'));
    const [{ vouchers, wraps, ...times }] = document.keys;
    const revoked = { at: '2026-01-01T00:00:00Z', by: { [times.id]: Buffer.alloc(32, 1).toString('base64url') } };
    const junk = { ...times, id: 'AAAAAAAAAAAA', vouchers, wraps };
    writeFileSync(ring, JSON.stringify({ ...document, keys: [{ ...times, vouchers, revoked, wraps }, junk] }));
    const { code, stdout } = await run(['status']);
    expect(code).toBe(3);
    expect(stdout).toContain(`seals now: ${hashedKeyId(times.id)}`);
    expect(stdout).toMatch(
      new RegExp(
        `^problem: the document lists key ${hashedKeyId(times.id)} as revoked, but has no valid certificate for it: .*\n {2}→ Find out`,
        'm',
      ),
    );
    const json = await run(['status', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      condition: 'attention',
      unverifiedRevocations: [hashedKeyId(times.id)],
      storedKeys: 2,
      // The codec does not use the second key, which no other key vouches for.
      problems: [{ kind: 'unreadable-key' }, { kind: 'unverified-revocation' }],
    });
    const { healthy, findings } = JSON.parse((await run(['doctor', '--json'])).stdout);
    expect(healthy).toBe(true);
    expect(findings).toContainEqual(expect.objectContaining({ id: 'ring-revocation-unverified', severity: 'warning' }));
    expect(findings).toContainEqual(expect.objectContaining({ id: 'ring-keys-ignored', severity: 'warning' }));
    expect(findings).toContainEqual(
      expect.objectContaining({ id: 'ring', severity: 'ok', what: expect.stringContaining('1 of 2 keys are live') }),
    );
    // A revocation with a certificate is not a problem.
    await run(['revoke', '--yes', '--no-wait', '--', times.id]);
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({ unverifiedRevocations: [] });
  });

  test.each([
    ['cannot be read', 'rmSync(path); mkdirSync(path);', /: corrupt: not a regular file\./],
    ['is no longer a ring', "writeFileSync(path, 'junk');", /: not JSON\./],
    ['is gone', 'rmSync(path);', /: the store has no ring\./],
  ])('status reports that the document %s after the codec has read it', async (_, damage, reason) => {
    const config = join(project.cwd, 'damaged.config.mjs');
    writeFileSync(
      config,
      `import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileRing, localKeyWrapper } from '@sealring/core';
const path = 'sealring.local.ring';
const ring = fileRing(path);
let reads = 0;
export default {
  ringName: 'local',
  keyWrapper: localKeyWrapper({ masterKey: readFileSync('sealring.local.key', 'utf8').trim() }),
  ring: {
    kind: ring.kind,
    write: (document, options) => ring.write(document, options),
    read(options) {
      reads += 1;
      if (reads === 2) { ${damage} }
      return ring.read(options);
    },
  },
};
`,
    );
    const { code, stdout } = await run(['status', '--json', '--config', config]);
    const status = JSON.parse(stdout);
    expect({ code, ...status }).toMatchObject({
      code: 3,
      condition: 'attention',
      problems: [{ kind: 'document-unread', detail: expect.stringMatching(reason) }],
    });
    expect(Object.keys(status)).not.toContain('unverifiedRevocations');
    expect(Object.keys(status)).not.toContain('storedKeys');
  });

  test('with 48 keys or more, status and the doctor warn, and rotate is rejected, but revoke is not', async () => {
    await using codec = await createKmsCodec({
      ringName: 'local',
      ring: fileRing(join(project.cwd, 'sealring.local.ring')),
      keyWrapper: localKeyWrapper({ masterKey: secretOf() }),
    });
    for (let i = 1; i < 47; i++) await codec.rotate();
    expect((await run(['status'])).stdout).not.toContain('of 64 keys');
    await codec.rotate();
    await codec.close();
    const { stdout } = await run(['status']);
    expect(stdout).toMatch(/^problem: the ring has 48 of 64 keys\n {2}→ /m);
    const { findings } = JSON.parse((await run(['doctor', '--json'])).stdout);
    expect(findings).toContainEqual(expect.objectContaining({ id: 'ring-size', severity: 'warning' }));
    expect(await run(['rotate'])).toMatchObject({ code: 1, stderr: expect.stringContaining('too-large') });
    expect((await run(['revoke', '--all', '--yes', '--no-wait'])).code).toBe(0);
  });

  test('revoke rejects a key that the ring does not have, and names it', async () => {
    const { code, stderr } = await run(['revoke', 'AAAAAAAAAAAA', '--yes']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/no key "AAAAAAAAAAAA"/);
  });

  test.each([
    [['revoke', '--yes']],
    [['revoke', 'AAAAAAAAAAAA', '--before', '2026-01-01']],
    [['revoke', 'AAAAAAAAAAAA', '--all']],
    [['revoke', '--all', '--before', '2026-01-01']],
    [['revoke', '--before', 'yesterday']],
    [['revoke', '--before', '2026-13-45']],
  ])('%j is rejected with exit code 2', async (args) => {
    expect((await run(args)).code).toBe(2);
  });

  test('inspect prints no control character of a hostile token', async () => {
    const input = `sr1.\u001b]0;title\u0007\u001b[2J${'A'.repeat(120)}`;
    const { code, stdout, stderr } = await run(['inspect'], { input });
    expect(code).toBe(1);
    expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u);
  });

  test('inspect shows the format, key and state of a token from standard input, but not its content', async () => {
    const token = await seal('a very secret order');
    const { code, stdout, stderr } = await run(['inspect'], { input: `${token}\n` });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/format: sealring\nkey: +\S+\nstate: +active/);
    expect(stdout).not.toContain('secret order');
    const { key, keyId } = JSON.parse((await run(['inspect', '--json'], { input: token })).stdout);
    expect(key).toBe((await statusOf()).sealingKey);
    expect(key).toBe(hashedKeyId(keyId));
  });

  test('inspect accepts a token as an argument, and prints a note about the shell’s history', async () => {
    const { code, stderr } = await run(['inspect', await seal('x')]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/history/);
  });

  test('inspect does not repeat an input that is not a token', async () => {
    const { code, stdout, stderr } = await run(['inspect'], { input: 'hunter2-the-password' });
    expect(code).toBe(1);
    expect(stdout + stderr).not.toContain('hunter2');
    expect((await run(['inspect'], { input: '' })).code).toBe(2);
  });

  test('inspect shows the state of a revoked key', async () => {
    const token = await seal('x');
    await run(['revoke', '--yes', '--no-wait', '--before', new Date(Date.now() + 60_000).toISOString()]);
    expect((await run(['inspect'], { input: token })).stdout).toMatch(/state: +revoked/);
  });

  test('a command with a KMS key that did not wrap the ring fails, and creates no ring (F9)', async () => {
    writeFileSync(join(project.cwd, 'sealring.local.key'), randomBytes(32).toString('base64url'));
    const before = readFileSync(join(project.cwd, 'sealring.local.ring'), 'utf8');
    for (const command of [['status'], ['rotate'], ['init']]) {
      const { code, stderr } = await run(command);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /sealring doctor.* https:\/\/github\.com\/sealring\/sealring\/blob\/main\/docs\/errors\.md#keywrappererror-corrupt$/m,
      );
    }
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toContain('ring-foreign-key');
    expect(readFileSync(join(project.cwd, 'sealring.local.ring'), 'utf8')).toBe(before);
  });
});
