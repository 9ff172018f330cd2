import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkPrincipal, mintClaims, readClaims } from '../../src/boundary/claims.ts';
import { principalClaim, surrogatePass } from '../../src/boundary/principal-claim.ts';
import { Refusal } from '../../src/boundary/refusal.ts';

const IDENTITY = { method: 'tools/call', target: 'refund', digest: 'RBNvo1WzZ4oRRq0W9-hknw' } as const;
const NOW = 1_795_000_000;
const EXPECTED = { nowSeconds: NOW, futureSkewSeconds: 60, identity: IDENTITY, audience: 'refund-desk' };
const INPUT = {
  nowSeconds: NOW,
  ttlSeconds: 600,
  identity: IDENTITY,
  state: 'plain',
  audience: 'refund-desk',
  principal: null,
  id: null,
};
const INBOUND = ['malformed', 'minted in the future', 'expired', 'request binding', 'audience'];

/** The reason of a refusal, or the unexpected result. */
function reasonOf(attempt: () => unknown): string {
  try {
    attempt();
    return 'accepted';
  } catch (error) {
    return error instanceof Refusal
      ? error.reason
      : `not a Refusal: ${error instanceof Error ? error.name : typeof error}`;
  }
}

const text = (value: unknown) => Buffer.from(JSON.stringify(value));
const anyString = fc.string({ unit: 'binary' }).map((value) => `${value}\ud800`);

const opened = (nowSeconds: number, futureSkewSeconds: number) =>
  reasonOf(() => readClaims(mintClaims(INPUT), { ...EXPECTED, nowSeconds, futureSkewSeconds }));

describe('readClaims', () => {
  test('refuses arbitrary bytes with one of the defined reasons, and throws nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(INBOUND).toContain(reasonOf(() => readClaims(bytes, EXPECTED)));
      }),
    );
  });

  test('refuses arbitrary JSON, and claims with arbitrary members', () => {
    const members = ['v', 'iat', 'exp', 'm', 't', 'a', 's', 'aud', 'p', 'j', '__proto__', 'constructor'];
    const good: Record<string, unknown> = JSON.parse(Buffer.from(mintClaims(INPUT)).toString());
    fc.assert(
      fc.property(fc.constantFrom(...members), fc.jsonValue(), fc.jsonValue(), (member, value, whole) => {
        expect(INBOUND).toContain(reasonOf(() => readClaims(text(whole), EXPECTED)));
        const changed = JSON.stringify({ ...good, [member]: undefined }).replace(/}$/, `,${JSON.stringify(member)}:`);
        const reason = reasonOf(() => readClaims(Buffer.from(`${changed}${JSON.stringify(value)}}`), EXPECTED));
        expect([...INBOUND, 'accepted']).toContain(reason);
      }),
    );
  });

  test('accepts the output of mintClaims for every state, target, audience and time', () => {
    const time = fc.double({ min: 0, max: 4e9, noNaN: true });
    fc.assert(
      fc.property(anyString, anyString, anyString, time, (state, target, audience, nowSeconds) => {
        const identity = { ...IDENTITY, target };
        const bytes = mintClaims({ ...INPUT, state, identity, audience, nowSeconds });
        expect(bytes.every((byte) => byte < 0x7f)).toBe(true);
        const claims = readClaims(bytes, { ...EXPECTED, identity, audience, nowSeconds });
        expect(claims).toMatchObject({ state, principal: null, id: null });
      }),
    );
  });

  test('refuses a time of NaN, both when claims are minted and when they are read', () => {
    const bytes = mintClaims(INPUT);
    expect(reasonOf(() => readClaims(bytes, { ...EXPECTED, nowSeconds: Number.NaN }))).toBe('minted in the future');
    for (const nowSeconds of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      expect(() => mintClaims({ ...INPUT, nowSeconds })).toThrow(RangeError);
  });

  test('refuses a request that cannot be bound, and reports why it cannot, unless the time is wrong', () => {
    const expected = { ...EXPECTED, identity: new Refusal('arguments too large') };
    expect(reasonOf(() => readClaims(mintClaims(INPUT), expected))).toBe('arguments too large');
    expect(reasonOf(() => readClaims(mintClaims(INPUT), { ...expected, nowSeconds: NOW + 600 }))).toBe('expired');
  });

  test('accepts a time in the future up to exactly the configured tolerance', () => {
    expect(opened(NOW - 60, 60)).toBe('accepted');
    expect(opened(NOW - 60.001, 60)).toBe('minted in the future');
    expect(opened(NOW - 1, 0)).toBe('minted in the future');
    expect(opened(NOW + 599.999, 0)).toBe('accepted');
    expect(opened(NOW + 600, 0)).toBe('expired');
  });

  test('the claim j comes last, after aud and p, and the members of the Python SDK keep their order', () => {
    const printed = Buffer.from(mintClaims({ ...INPUT, principal: 'P', id: 'J' })).toString();
    expect(Object.keys(JSON.parse(printed))).toEqual(['v', 'iat', 'exp', 'm', 't', 'a', 's', 'aud', 'p', 'j']);
    expect(printed).toContain('"iat":1795000000.0,"exp":1795000600.0,');
  });
});

describe('the principal claim', () => {
  test('equals the principal claim of the MCP Python SDK', () => {
    const claim = principalClaim('["web",null,null]', Buffer.from('e67e7c2b23f80928', 'hex'));
    expect(claim).toBe('5n58KyP4CShr2cJ0DJBILRBcfVS-ThQn');
  });

  test('matches its own principal and no other string', () => {
    const salt = fc.uint8Array({ minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(anyString, anyString, salt, (one, other, bytes) => {
        const claim = principalClaim(one, bytes);
        expect(reasonOf(() => checkPrincipal(claim, one))).toBe('accepted');
        expect(reasonOf(() => checkPrincipal(claim, other))).toBe(one === other ? 'accepted' : 'principal');
        expect(reasonOf(() => checkPrincipal(claim, null))).toBe('principal drift');
        expect(reasonOf(() => checkPrincipal(null, one))).toBe('principal drift');
      }),
    );
  });

  test('refuses a claim of any other shape, without throwing', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.string(),
          fc.uint8Array().map((b) => Buffer.from(b).toString('base64url')),
        ),
        (claim) => {
          expect(['principal', 'principal drift']).toContain(reasonOf(() => checkPrincipal(claim, 'alice')));
        },
      ),
    );
  });

  test.each([
    ['\ud800', 'eda080'],
    ['\udfff', 'edbfbf'],
    ['a\udbffb', '61edafbf62'],
    ['🔑\ud800', 'f09f9491eda080'],
    ['\udc00\ud800', 'edb080eda080'],
    ['é東', 'c3a9e69db1'],
  ])('encodes %j as Python’s surrogatepass does', (given, hex) => {
    expect(Buffer.from(surrogatePass(given)).toString('hex')).toBe(hex);
  });
});
