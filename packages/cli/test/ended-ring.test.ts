import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newRing, type RingProject } from './rings.ts';

let ring: RingProject;
beforeEach(async () => {
  ring = await newRing();
});
afterEach(() => ring[Symbol.dispose]());

describe.each([
  ['whose keys are all revoked', () => ring.revokeWithoutSuccessor()],
  ['whose keys have all expired', () => ring.age(40)],
])('a ring %s', (_, end) => {
  beforeEach(() => end());

  test('the doctor reports that the ring has ended, not that someone changed it', async () => {
    const { code, printed } = await ring.json(['doctor']);
    expect(code).toBe(1);
    const ids = printed.findings.map(({ id }: { readonly id: string }) => id);
    expect(ids).toContain('ring-ended');
    expect(ids).not.toContain('ring-unauthentic');
    const remedy = expect.stringContaining('sealring rotate');
    expect(printed.findings).toContainEqual(expect.objectContaining({ id: 'ring-ended', remedy }));
  });

  test.each([[['status']], [['keeper', '--once']], [['export', 'copy.ring']]])(
    '%j fails with no-sealing-key and names rotate, and changes nothing',
    async (args) => {
      const before = ring.text;
      const { code, printed } = await ring.json(args);
      const message = expect.stringContaining('sealring rotate');
      expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'no-sealing-key', message } } });
      expect(ring.text).toBe(before);
    },
  );

  test.each([['rotate'], ['init']])('%s publishes a key that seals at once', async (command) => {
    const before = ring.names;
    const { code, printed } = await ring.json([command]);
    const [added] = ring.names.filter((name) => !before.includes(name));
    expect({ code, printed }).toMatchObject({
      code: 0,
      printed: { published: [added], sealingKey: added, condition: 'ok' },
    });
    expect((await ring.run(['status'])).code).toBe(0);
  });

  test('init reports the key that it adds to the ring', async () => {
    const { stdout } = await ring.run(['init']);
    expect(stdout).toMatch(
      /^the ring already exists, but none of its keys may seal; published key \S+, which seals now\n/,
    );
  });
});

test('rotate creates no ring in an empty store', async () => {
  ring.configure('empty.config.mjs', (text) => text.replace("at('sealring.local.ring')", "at('none.ring')"));
  const { code, printed } = await ring.json(['rotate', '--config', 'empty.config.mjs']);
  expect({ code, printed }).toMatchObject({ code: 1, printed: { error: { code: 'ring-absent' } } });
});

test('a ring whose live keys acceptKeysCreatedAfter excludes is not reported as one that someone changed', async () => {
  ring.add('acceptKeysCreatedAfter: new Date(Date.now() + 60_000),');
  const { code, printed } = await ring.json(['doctor']);
  expect(code).toBe(1);
  const what = expect.stringContaining('acceptKeysCreatedAfter');
  expect(printed.findings).toContainEqual(expect.objectContaining({ id: 'ring-ended', what }));
});
