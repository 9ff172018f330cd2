import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { keyIdOf } from '../../src/formats/derivation.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { encodeDocument, parseDocument } from '../../src/ring/document.ts';
import { Fleet, open, seal } from '../support/fleet.ts';

/** Comparisons by Node's own constant-time function, which continues to compare. */
const compared: [Buffer, Buffer][] = [];
vi.mock(import('node:crypto'), async (original) => {
  const crypto = await original();
  const timingSafeEqual: typeof crypto.timingSafeEqual = (a, b) => {
    compared.push([Buffer.from(a as Uint8Array), Buffer.from(b as Uint8Array)]);
    return crypto.timingSafeEqual(a, b);
  };
  return { ...crypto, default: { ...crypto, timingSafeEqual }, timingSafeEqual };
});

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
  compared.length = 0;
});
afterEach(() => fleet.close());

const isCompared = (bytes: Uint8Array): boolean => compared.some((pair) => pair.some((each) => each.equals(bytes)));

describe('secrets that are compared with values that an attacker chooses (F20)', () => {
  test('the 18-byte commitment of a token is compared in constant time, right or wrong', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const token = seal(a);
    const header = Buffer.from(token.slice(4, 64), 'base64url');
    expect(open(b, token)).toBe('state');
    expect(isCompared(header.subarray(27))).toBe(true);
    compared.length = 0;
    const strange = Buffer.concat([header.subarray(0, 27), randomBytes(18)]);
    expect(open(b, `sr1.${strange.toString('base64url')}${token.slice(64)}`)).toBe(
      'InvalidRequestState: authentication failed',
    );
    expect(isCompared(strange.subarray(27))).toBe(true);
  });

  test('the 32-byte vouchers, certificates and wrap MACs of a ring document are compared in constant time', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    await a.codec.rotate();
    await a.codec.revoke(a.codec.health().sealingKey ?? '');
    const document = parseDocument((await fleet.store.document()) ?? '', 'default');
    const [first, second] = document.entries;
    if (first?.revoked === undefined || second === undefined)
      throw new Error('there are two keys, the first is revoked');
    await b.codec.refresh();
    expect(isCompared([...second.vouchers.values()][0] ?? randomBytes(32))).toBe(true);
    expect(isCompared([...first.revoked.by.values()][0] ?? randomBytes(32))).toBe(true);
    const wrong = randomBytes(32);
    const [wrap] = second.wraps;
    if (wrap === undefined) throw new Error('an entry has a wrap');
    const others = document.entries.slice(2);
    for (const changed of [
      [first, { ...second, vouchers: new Map([[first.id, wrong]]) }],
      [first, { ...second, wraps: [wrap, { ...wrap, keyId: 'another', mac: wrong }] }],
      [{ ...first, revoked: { at: first.revoked.at, by: new Map([[second.id, wrong]]) } }, second],
    ]) {
      await fleet.store.put(encodeDocument({ ...document, entries: [...changed, ...others] }));
      compared.length = 0;
      await b.codec.refresh();
      expect(isCompared(wrong)).toBe(true);
    }
  });

  test('the data key that a wrap must unwrap to is compared in constant time', async () => {
    const inner = localKeyWrapper({ masterKey: randomBytes(32) });
    const dataKeys: Buffer[] = [];
    const keyWrapper = {
      ...inner,
      unwrap: async (...given: Parameters<typeof inner.unwrap>) => {
        const dataKey = await inner.unwrap(...given);
        dataKeys.push(Buffer.from(dataKey));
        return dataKey;
      },
    };
    const a = await fleet.start({ keyWrapper });
    expect(dataKeys.map((dataKey) => keyIdOf(dataKey).toString('base64url'))).toEqual([a.codec.health().sealingKey]);
    for (const dataKey of dataKeys) expect(isCompared(dataKey)).toBe(true);
  });
});
