import { describe, expect, test } from 'vitest';
import { MAX_DOCUMENT_BYTES, RingConflictError, RingStoreError } from '../../src/contracts/ring-store.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';
import { staticRing } from '../../src/stores/static-ring.ts';

const PAGE = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';

describe('a memory ring', () => {
  test('counts its revisions up from 1', async () => {
    const ring = memoryRing();
    expect(ring.kind).toBe('memory');
    expect(await ring.write('one', { expected: undefined })).toEqual({ revision: '1' });
    expect(await ring.write('two', { expected: '1' })).toEqual({ revision: '2' });
    expect(await ring.read()).toEqual({ document: 'two', revision: '2' });
    await expect(ring.write('three', { expected: '1' })).rejects.toBeInstanceOf(RingConflictError);
  });

  test('does not call a watcher that has unsubscribed since the write', async () => {
    const ring = memoryRing();
    const told: string[] = [];
    const ends = ['a', 'b'].map((name) => ring.watch?.(() => void told.push(name)));
    const written = ring.write('one', { expected: undefined });
    ends[0]?.();
    await written;
    await Promise.resolve();
    expect(told).toEqual(['b']);
  });

  test('names the function to which a wrong argument was passed', async () => {
    await expect(memoryRing().write('', { expected: undefined })).rejects.toThrow(/^memoryRing: /);
  });
});

describe('a static ring', () => {
  test('a static ring always has the same kind, document and revision', async () => {
    const ring = staticRing('document');
    expect(ring.kind).toBe('static');
    const first = await ring.read();
    expect(first).toEqual({ document: 'document', revision: expect.stringMatching(/./) });
    expect(await ring.read()).toEqual(first);
    await expect(ring.write('other', { expected: first?.revision })).rejects.toMatchObject({ kind: 'read-only' });
  });

  test('names the function to which a wrong argument was passed', () => {
    expect(() => staticRing('')).toThrow(/^staticRing: /);
    expect(MAX_DOCUMENT_BYTES).toBe(262_144);
    expect(() => staticRing('x'.repeat(MAX_DOCUMENT_BYTES + 1))).toThrow(/^staticRing: .* 262144 .* 262145/);
  });
});

describe('an error of a ring store', () => {
  test('an error of a ring store is recognized by its name, names a remedy, and links to its section of the documentation', () => {
    const conflict = new RingConflictError();
    expect(String(conflict)).toMatch(/^RingConflictError: .*read it again/);
    expect(conflict.help).toBe(`${PAGE}#ringconflicterror`);
    for (const kind of ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'] as const) {
      const error = new RingStoreError(kind, 'detail');
      expect(String(error)).toBe(`RingStoreError: ring store ${kind}: detail`);
      expect(error.help).toBe(`${PAGE}#ringstoreerror-${kind}`);
    }
  });
});
