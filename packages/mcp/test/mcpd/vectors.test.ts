import { createCipheriv, createHmac, hkdfSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createMcpdRequestStateCodec } from '../../src/mcpd/index.ts';
import { clockAt } from '../support/exchange.ts';
import { type McpdVectors, mcpdVectors } from '../support/vectors.ts';

type Vector = McpdVectors[number];

/** When mcp.d made the tokens that have not expired, if their time to live was 300 s. */
const BEFORE = 1_795_000_000_000;
const titled = mcpdVectors.map((vector, i) => ({ ...vector, title: `${i} ${vector.mode} ${vector.bindTo}` }));

/** A codec like the server that made the vector: its revision signed with the key of the bind tags. */
function codecOf({ keyHex, mode, bindTo }: Vector, revision: 'current' | '2026-06', nowMs = BEFORE, ttlSeconds = 300) {
  const key = Buffer.from(keyHex, 'hex');
  return createMcpdRequestStateCodec({ key, mode, binding: bindTo, revision, ttlSeconds, clock: clockAt(nowMs) });
}

/** The sub-keys, derived independently from the format's specification. */
function subKey(keyHex: string, info: string): Buffer {
  const secret = Buffer.from(keyHex, 'hex');
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(32), `mcp.requestState ${info} key`, 32));
}

function materialOf({ bindTo, subject, tool }: Vector): string {
  return { none: '', authSubject: subject, authSubjectAndTool: `${subject}\0${tool}` }[bindTo];
}

function tagOf(vector: Vector): string {
  return createHmac('sha256', subKey(vector.keyHex, 'bind-hmac')).update(materialOf(vector)).digest('hex');
}

/** The encrypted token of a payload under the nonce of another token. */
function encryptedAs(vector: Vector, payload: string): string {
  const nonce = Buffer.from(vector.wire.slice(4), 'base64url').subarray(0, 12);
  const cipher = createCipheriv('aes-256-gcm', subKey(vector.keyHex, 'aes-256-gcm'), nonce, { authTagLength: 16 });
  cipher.setAAD(Buffer.from(tagOf(vector)));
  const sealed = Buffer.concat([nonce, cipher.update(payload), cipher.final(), cipher.getAuthTag()]);
  return `v1e.${sealed.toString('base64url')}`;
}

describe('vectors of mcp.d’s secureRequestState, revision of June 2026', () => {
  test('the file has 30 vectors of secureRequestState', () => expect(mcpdVectors.length).toBe(30));

  test.each(titled)('$title: the codec accepts or refuses the token as recorded', (vector) => {
    // The expired tokens had no life left when they were made; by the real clock, the other tokens have decades left.
    const codec = codecOf(vector, '2026-06', vector.expired ? Date.parse('2027-01-01') : BEFORE);
    for (const { subject, tool, accepted } of vector.echoedBy) {
      const who = { subject, target: tool };
      expect({ ...who, state: codec.decode(vector.wire, who) }).toEqual({
        ...who,
        state: accepted ? vector.state : null,
      });
    }
    const minter = { subject: vector.subject, target: vector.tool };
    expect(codec.decode(vector.wire, minter)).toBe(vector.expired ? null : vector.state);
  });

  test.each(titled)('$title: the codec makes the same token, byte for byte', (vector) => {
    const who = { subject: vector.subject, target: vector.tool };
    const exp = expOf(vector);
    const ours = codecOf(vector, '2026-06', (exp - 300) * 1_000).encode(vector.state, who);
    // Encrypted tokens have a nonce each: the reference makes the same payload into both.
    const payload = JSON.stringify({ b: tagOf(vector), exp, s: vector.state });
    const under = (wire: string) =>
      vector.mode === 'signed' ? vector.wire : encryptedAs({ ...vector, wire }, payload);
    expect([under(vector.wire), under(ours)]).toEqual([vector.wire, ours]);
  });

  test.each(titled)('$title: the current revision accepts the token only if it is encrypted', (vector) => {
    const who = { subject: vector.subject, target: vector.tool };
    const opened = codecOf(vector, 'current').decode(vector.wire, who);
    expect(opened).toBe(vector.mode === 'signed' ? null : vector.state);
  });
});

/**
 * When the token expires: a signed token contains the time; for an encrypted one, it is the only time that yields its
 * bytes.
 */
function expOf(vector: Vector): number {
  if (vector.mode === 'signed') {
    const claims: { exp: number } = JSON.parse(Buffer.from(vector.wire.split('.')[1] ?? '', 'base64url').toString());
    return claims.exp;
  }
  const near = mcpdVectors.find(({ mode, expired }) => mode === 'signed' && expired === vector.expired);
  const around = near === undefined ? 0 : expOf(near);
  for (let exp = around - 60; exp <= around + 60; exp++) {
    const payload = JSON.stringify({ b: tagOf(vector), exp, s: vector.state });
    if (encryptedAs(vector, payload) === vector.wire) return exp;
  }
  throw new Error('no instant gives this token');
}
