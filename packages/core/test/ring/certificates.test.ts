import { createHash, createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DataKey } from '../../src/keys/data-key.ts';
import {
  ancestorsMacOf,
  areRightAncestors,
  certificateOf,
  isCertified,
  isNewer,
  isRightWrap,
  isVouched,
  newestFirst,
  rightCertificates,
  rightVouchers,
  voucherOf,
  vouchersBy,
  wrapMacOf,
} from '../../src/ring/certificates.ts';
import {
  ancestorsBy,
  entryBy,
  RING,
  revocationBy,
  signerOf,
  signersWith,
  T0,
  testKey,
  wrapBy,
} from '../support/certified.ts';

const [oldest, middle, newest] = [testKey(1), testKey(2), testKey(3)] as const;
const stranger = testKey(99);

describe('a newer key', () => {
  test('the newer of two keys is the one created later or, if both were created at once, the one with the greater id', () => {
    expect(isNewer({ created: 2, id: 'a' }, { created: 1, id: 'b' })).toBe(true);
    expect(isNewer({ created: 1, id: 'b' }, { created: 2, id: 'a' })).toBe(false);
    expect(isNewer({ created: 1, id: 'b' }, { created: 1, id: 'a' })).toBe(true);
    expect(isNewer({ created: 1, id: 'a' }, { created: 1, id: 'b' })).toBe(false);
    expect(isNewer({ created: 1, id: 'a' }, { created: 1, id: 'a' })).toBe(false);
  });

  test('newer keys are sorted first, whatever the original order', () => {
    const key = fc.record({ created: fc.nat(3), id: fc.constantFrom('a', 'b', 'c', 'd') });
    const keys = fc.uniqueArray(key, { selector: ({ created, id }) => `${created}${id}`, maxLength: 12 });
    fc.assert(
      fc.property(keys, (some) => {
        const sorted = some.toSorted(newestFirst);
        expect(some.toReversed().toSorted(newestFirst)).toEqual(sorted);
        for (const [i, each] of sorted.slice(1).entries()) expect(isNewer(sorted[i] as typeof each, each)).toBe(true);
      }),
    );
  });
});

describe('the MACs of the ring', () => {
  const dataKey = createHash('sha256').update('a data key').digest();
  const held = new DataKey(dataKey, RING);
  const sub = createHmac('sha512', dataKey).update('sealring/v1/ring-mac\0\0\x08payments').digest().subarray(0, 32);
  const hmac = (text: string): string => createHmac('sha256', sub).update(text, 'ascii').digest('base64url');
  const own = { ...testKey(1), id: held.id, held };

  test('a voucher is an HMAC over the ring, the id and all four times of the new key (F27)', () => {
    const { id } = newest;
    const times = '"2026-11-21T03:03:00Z","2026-11-21T04:03:00Z","2026-11-22T03:03:00Z","2026-11-23T03:03:00Z"';
    expect(voucherOf(RING, newest, held.authenticator).toString('base64url')).toBe(
      hmac(`["key","payments","${id}",${times}]`),
    );
  });

  test('the MAC of a wrap covers the ring, id, provider, key version, ciphertext and signature (F27)', () => {
    const wrap = { provider: 'local', keyId: 'é', wrapped: Buffer.from([0xfb, 0xff, 0]) };
    const common = `["wrap","payments","${held.id}","local","\\u00e9","-_8A"`;
    expect(wrapMacOf(RING, wrap, held.authenticator).toString('base64url')).toBe(hmac(`${common},null]`));
    const signed = { ...wrap, signature: Buffer.from([1, 2, 3]) };
    expect(wrapMacOf(RING, signed, held.authenticator).toString('base64url')).toBe(hmac(`${common},"AQID"]`));
  });

  test('the ancestors of a key are certified by an HMAC over the ring, the key’s id and their ids (F27)', () => {
    const ids = [middle.id, oldest.id];
    const text = `["ancestors","payments","${held.id}","${middle.id}","${oldest.id}"]`;
    expect(ancestorsMacOf(RING, ids, held.authenticator).toString('base64url')).toBe(hmac(text));
    expect(ancestorsMacOf(RING, [], held.authenticator).toString('base64url')).toBe(
      hmac(`["ancestors","payments","${held.id}"]`),
    );
  });

  test('a certificate of a revocation covers the ring, the id and the time (F27)', () => {
    const text = `["revoked","payments","${newest.id}","2026-11-21T03:00:00Z"]`;
    expect(certificateOf(RING, newest.id, T0, held.authenticator).toString('base64url')).toBe(hmac(text));
  });

  test('an authenticator outlives its data key, and throws once the authenticator itself is overwritten', () => {
    const gone = new DataKey(dataKey, RING);
    gone.destroy();
    expect(voucherOf(RING, newest, gone.authenticator)).toEqual(voucherOf(RING, newest, own.held.authenticator));
    gone.authenticator.destroy();
    expect(() => voucherOf(RING, newest, gone.authenticator)).toThrow('was overwritten');
  });
});

describe('a voucher', () => {
  const entry = entryBy(newest, [oldest, middle]);

  test('a voucher is valid under the key that made it, and only vouchers by known keys count', () => {
    expect([...rightVouchers(RING, entry, signersWith(oldest, middle)).keys()]).toEqual([oldest.id, middle.id]);
    expect([...rightVouchers(RING, entry, signersWith(middle, stranger)).keys()]).toEqual([middle.id]);
    expect(isVouched(RING, entry, signersWith(oldest))).toBe(true);
  });

  test('a key gets vouchers by at most the eight newest older keys, and by no key of a ring that the member left', () => {
    const keys = Array.from({ length: 12 }, (_, i) => testKey(i + 1));
    const later = entryBy(testKey(11), []);
    const left = signerOf(testKey(6));
    const signers = new Map([...signersWith(...keys), [left.id, { ...left, isLeft: true }]]);
    const idsOf = (...numbers: readonly number[]) => numbers.map((n) => testKey(n).id);
    const madeBesides = (...known: readonly number[]) => {
      const vouchers = vouchersBy(RING, later, signersWith(...known.map((n) => testKey(n))));
      return [...vouchersBy(RING, later, signers, vouchers).keys()];
    };
    expect(madeBesides()).toEqual(idsOf(10, 9, 8, 7, 5, 4, 3, 2));
    expect(madeBesides(1, 3, 4, 5, 6, 7, 8)).toEqual(idsOf(8, 7, 6, 5, 4, 3, 1, 10));
    expect(madeBesides(1, 2, 3, 4, 5, 6, 7, 8)).toEqual(idsOf(8, 7, 6, 5, 4, 3, 2, 1));
    const vouchers = vouchersBy(RING, later, signersWith(testKey(5), testKey(6)));
    expect([...rightVouchers(RING, { ...later, vouchers }, signers).keys()]).toEqual(idsOf(5));
  });

  test('a voucher by an unknown key is ignored', () => {
    expect(isVouched(RING, entry, signersWith(stranger))).toBe(false);
    expect(isVouched(RING, entryBy(newest, []), signersWith(oldest, newest))).toBe(false);
  });

  test.each<readonly [string, Partial<typeof entry>]>([
    ['id', { id: stranger.id }],
    ['created', { created: entry.created + 1_000 }],
    ['activates', { activates: entry.activates + 1_000 }],
    ['sealsUntil', { sealsUntil: entry.sealsUntil + 1_000 }],
    ['opensUntil', { opensUntil: entry.opensUntil + 1_000 }],
  ])('a voucher is invalid for an entry with another %s', (_, change) => {
    expect(isVouched(RING, { ...entry, ...change }, signersWith(oldest, middle))).toBe(false);
  });

  test('a voucher is invalid in another ring, and under the id of another key', () => {
    expect(isVouched('orders', entry, signersWith(oldest, middle))).toBe(false);
    const [mac] = entry.vouchers.values();
    const renamed = { ...entry, vouchers: new Map([[middle.id, mac as Uint8Array]]) };
    expect(isVouched(RING, renamed, signersWith(oldest, middle))).toBe(false);
  });

  test('a voucher by a revoked key stays valid, as two halves of a fleet could otherwise refuse each other permanently', () => {
    expect(isVouched(RING, entry, new Map([[oldest.id, signerOf(oldest, true)]]))).toBe(true);
  });
});

describe('the MAC of a wrap', () => {
  const wrap = wrapBy(newest, { signature: Buffer.from('signed') });

  test('the MAC of a wrap is valid only under the wrapped key', () => {
    expect(isRightWrap(RING, wrap, newest.held.authenticator)).toBe(true);
    expect(isRightWrap(RING, wrap, oldest.held.authenticator)).toBe(false);
    expect(isRightWrap('orders', wrap, newest.held.authenticator)).toBe(false);
  });

  test.each<readonly [string, Partial<typeof wrap>]>([
    ['provider', { provider: 'aws-kms' }],
    ['version of the key', { keyId: 'l' }],
    ['ciphertext', { wrapped: Buffer.from('other') }],
    ['signature', { signature: Buffer.from('other') }],
    ['MAC', { mac: Buffer.alloc(32, 1) }],
  ])('the MAC of a wrap is invalid for another %s', (_, change) => {
    expect(isRightWrap(RING, { ...wrap, ...change }, newest.held.authenticator)).toBe(false);
  });

  test('the MAC of a wrap is invalid without the signature that the MAC covers', () => {
    const { signature: _, ...unsigned } = wrap;
    expect(isRightWrap(RING, unsigned, newest.held.authenticator)).toBe(false);
  });
});

describe('the certified ancestors of a key', () => {
  test('the certified ancestors of a key are valid only under that key, and only with exactly the certified ids', () => {
    const said = ancestorsBy(newest, [oldest, middle]);
    expect(areRightAncestors(RING, said, newest.held.authenticator)).toBe(true);
    expect(areRightAncestors(RING, said, middle.held.authenticator)).toBe(false);
    expect(areRightAncestors('orders', said, newest.held.authenticator)).toBe(false);
    for (const ids of [[oldest.id], [middle.id, oldest.id], [...said.ids, stranger.id], []]) {
      expect(areRightAncestors(RING, { ...said, ids }, newest.held.authenticator)).toBe(false);
    }
  });
});

describe('a revocation', () => {
  const all = signersWith(oldest, middle, newest);

  test('a revocation is certified by the revoked key itself', () => {
    expect(isCertified(RING, middle, revocationBy(middle.id, [middle]), all)).toBe(true);
  });

  test('a revocation is certified by a newer key', () => {
    expect(isCertified(RING, middle, revocationBy(middle.id, [newest]), all)).toBe(true);
  });

  test('a revocation is not certified by an older key', () => {
    expect(isCertified(RING, middle, revocationBy(middle.id, [oldest]), all)).toBe(false);
  });

  test('a revocation is not certified by a newer key that is revoked itself', () => {
    const signers = new Map([...all, [newest.id, signerOf(newest, true)]]);
    expect(isCertified(RING, middle, revocationBy(middle.id, [newest]), signers)).toBe(false);
    expect(isCertified(RING, newest, revocationBy(newest.id, [newest]), signers)).toBe(true);
  });

  test('a revocation is not certified by an unknown key, nor without a certificate', () => {
    expect(isCertified(RING, middle, revocationBy(middle.id, [stranger]), all)).toBe(false);
    expect(isCertified(RING, middle, revocationBy(middle.id, []), all)).toBe(false);
    expect(isCertified(RING, middle, revocationBy(middle.id, [middle]), new Map())).toBe(false);
  });

  test('a revocation is certified by one valid certificate among invalid ones', () => {
    const { at, by } = revocationBy(middle.id, [newest]);
    const mixed = new Map([[oldest.id, Buffer.alloc(32)], [middle.id, Buffer.alloc(32, 1)], ...by]);
    expect(isCertified(RING, middle, { at, by: mixed }, all)).toBe(true);
    expect([...rightCertificates(RING, middle.id, { at, by: mixed }, all).keys()]).toEqual([newest.id]);
  });

  test('a revocation is certified for one key, one time and one ring only', () => {
    const { at, by } = revocationBy(middle.id, [newest, middle]);
    expect(isCertified(RING, oldest, { at, by }, all)).toBe(false);
    expect(isCertified(RING, middle, { at: at + 1_000, by }, all)).toBe(false);
    expect(isCertified('orders', middle, { at, by }, all)).toBe(false);
  });

  test('of two keys created at once, the one with the greater id can certify the revocation of the other', () => {
    const [lesser, greater] = [oldest, { ...middle, created: oldest.created }].toSorted((a, b) =>
      a.id < b.id ? -1 : 1,
    );
    const [a, b] = [lesser, greater] as [typeof oldest, typeof oldest];
    const signers = signersWith(a, b);
    expect(isCertified(RING, a, revocationBy(a.id, [b]), signers)).toBe(true);
    expect(isCertified(RING, b, revocationBy(b.id, [a]), signers)).toBe(false);
  });
});
