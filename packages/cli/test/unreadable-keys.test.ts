import { existsSync, renameSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli } from './cli-process.ts';
import { newRing, type RingProject } from './rings.ts';

const REVOKE = ['--yes', '--no-wait'];

let ring: RingProject;
beforeEach(async () => {
  ring = await newRing();
});
afterEach(() => ring[Symbol.dispose]());

describe('a key that only another KMS key wraps', () => {
  beforeEach(() => ring.rotateWithAnotherKmsKey());

  test('revoke --all revokes the other keys, names the key that it cannot unwrap, and exits with 1', async () => {
    const [mine = '', other = ''] = ring.names;
    const { code, printed } = await ring.json(['revoke', '--all', ...REVOKE]);
    expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-revoked' } } });
    expect(printed.error.message).toMatch(new RegExp(`^revoked 1 key: ${mine}, but not 1 key: ${other}\\.`));
    expect(ring.keys[ring.names.indexOf(mine)]?.revoked).toBeDefined();
    // The successor certifies the revocation, but a server with only the other KMS key cannot unwrap the successor.
    expect((await ring.run(['revoke', '--all', ...REVOKE])).code).toBe(1);
    expect((await ring.run(['revoke', '--all', ...REVOKE, '--config', 'newer.config.mjs'])).code).toBe(0);
  });

  test('revoke prints the names of the keys that are not revoked before it waits', async () => {
    const [mine, other] = ring.names;
    const { code, stderr } = await runCli(['revoke', '--all', '--yes'], {
      cwd: ring.cwd,
      onStderr(text, child) {
        if (/waiting.*\n$/.test(text)) child.kill('SIGINT');
      },
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(new RegExp(`^WARNING: revoked 1 key: ${mine}, but not 1 key: ${other}\\.`)),
    });
  });

  test('revoke with the name or the id of that key exits with 1, and writes nothing', async () => {
    const before = ring.text;
    for (const key of [ring.names[1] ?? '', ring.keys[1]?.id ?? '']) {
      const { code, printed } = await ring.json(['revoke', ...REVOKE, '--', key]);
      expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-revoked' } } });
      expect(printed.error.message).toContain(ring.names[1]);
    }
    expect(ring.text).toBe(before);
  });

  test('revoke --dry-run lists that key as one that cannot be revoked', async () => {
    const before = ring.text;
    const [mine, other] = ring.names;
    const { code, printed } = await ring.json(['revoke', '--all', '--dry-run']);
    expect({ code, printed }).toMatchObject({ code: 0, printed: { wouldRevoke: [mine], cannotRevoke: [other] } });
    const { stdout } = await ring.run(['revoke', '--all', '--dry-run']);
    expect(stdout).toMatch(new RegExp(`^cannot revoke 1 key: ${other}: this configuration cannot unwrap it$`, 'm'));
    expect(ring.text).toBe(before);
  });

  test('revoke does not report that key as published when another key was named', async () => {
    const [mine = '', other] = ring.names;
    const { code, printed } = await ring.json(['revoke', ...REVOKE, '--', mine]);
    expect({ code, printed }).toMatchObject({ code: 0, printed: { revoked: [mine], published: { length: 1 } } });
    expect(printed.published).not.toContain(other);
  });

  test('status shows that key as a problem, and exits with 3', async () => {
    const { code, printed } = await ring.json(['status']);
    const detail = expect.stringContaining(ring.names[1] ?? '');
    expect({ code, printed }).toMatchObject({ code: 3, printed: { problems: [{ kind: 'unreadable-key', detail }] } });
  });

  test('the remedy of the doctor for that key mentions further key wrappers', async () => {
    const { printed } = await ring.json(['doctor']);
    const remedy = expect.stringContaining('further key wrappers');
    expect(printed.findings).toContainEqual(expect.objectContaining({ id: 'ring-keys-ignored', remedy }));
  });

  test.each([
    ['export', ['export', 'copy.ring']],
    ['export --plain', ['export', 'copy.ring', '--plain', 'python', '--they-leave-the-kms']],
  ])('%s names that key, and writes no file', async (_, args) => {
    const { code, printed } = await ring.json(args);
    expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-unwrapped' } } });
    expect(printed.error.message).toContain(ring.names[1]);
    expect(existsSync(ring.at('copy.ring'))).toBe(false);
  });

  test('import and import --from name that key, and store nothing', async () => {
    const [, other] = ring.names;
    ring.configure('new.config.mjs', (text) => text.replace("at('sealring.local.ring')", "at('new.ring')"));
    for (const from of [['sealring.local.ring'], ['--from', 'sealring.config.mjs']]) {
      const { code, printed } = await ring.json(['import', ...from, '--config', 'new.config.mjs']);
      expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-unwrapped' } } });
      expect(printed.error.message).toContain(other);
      expect(existsSync(ring.at('new.ring'))).toBe(false);
    }
  });
});

describe('a key whose wrap is damaged in the store', () => {
  test('revoke --all names the damaged active key, and exits with 1', async () => {
    await ring.run(['rotate']);
    const [active = ''] = ring.names;
    ring.damage(0);
    const { code, printed } = await ring.json(['revoke', '--all', ...REVOKE]);
    expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-revoked' } } });
    expect(printed.error.message).toMatch(new RegExp(`but not 1 key: ${active}\\.`));
  });

  test('import does not store a document with a damaged key', async () => {
    await ring.run(['rotate']);
    const [, propagating] = ring.names;
    ring.damage(1);
    renameSync(ring.at('sealring.local.ring'), ring.at('damaged.ring'));
    const { code, printed } = await ring.json(['import', 'damaged.ring']);
    expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'not-unwrapped' } } });
    expect(printed.error.message).toContain(propagating);
    expect(existsSync(ring.at('sealring.local.ring'))).toBe(false);
  });
});

test('revoke --all revokes a key that acceptKeysCreatedAfter excludes, for servers without that option too', async () => {
  await ring.age(2);
  await ring.run(['rotate']);
  const [excluded = ''] = ring.names;
  ring.add('acceptKeysCreatedAfter: new Date(Date.now() - 3_600_000),', 'pinned.config.mjs');
  expect((await ring.run(['revoke', '--all', ...REVOKE, '--config', 'pinned.config.mjs'])).code).toBe(0);
  const { printed } = await ring.json(['status']);
  expect(printed.keys).toContainEqual(expect.objectContaining({ name: excluded, state: 'revoked' }));
});

test('import --from stores nothing if the ring needs a new key, which the old place would not have', async () => {
  await ring.age(31);
  ring.configure('new.config.mjs', (text) => text.replace("at('sealring.local.ring')", "at('new.ring')"));
  const before = ring.text;
  const importFrom = ['import', '--from', 'sealring.config.mjs', '--config', 'new.config.mjs'];
  const { code, printed } = await ring.json(importFrom);
  expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'keys-changed' } } });
  expect(existsSync(ring.at('new.ring'))).toBe(false);
  expect(ring.text).toBe(before);
  await ring.run(['rotate']);
  expect((await ring.run(importFrom)).code).toBe(0);
});

test('status and export accept a ring whose older keys acceptKeysCreatedAfter excludes', async () => {
  await ring.age(2);
  await ring.run(['rotate']);
  ring.add('acceptKeysCreatedAfter: new Date(Date.now() - 3_600_000),');
  expect((await ring.json(['status'])).printed.problems).toEqual([]);
  expect((await ring.run(['export', 'copy.ring'])).code).toBe(0);
});
