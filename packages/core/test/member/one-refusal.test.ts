import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { InvalidRequestState, type RequestStateCodec } from '../../src/contracts/codec.ts';
import { Fleet, type Member, seal } from '../support/fleet.ts';

const DAY = 86_400;
const NATIVE = { accept: ['sealring', 'python'] } as const;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

function refusal(codec: RequestStateCodec, token: string): Error {
  try {
    codec.unseal(token);
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('the token was not refused');
}

function changedAt(token: string, at: number): string {
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}

/** Everything that could distinguish two refusals, except the reason and the lines of this project's code. */
function shapeOf(error: Error): unknown {
  const names = Object.getOwnPropertyNames(error).toSorted();
  return {
    class: Object.getPrototypeOf(error) === InvalidRequestState.prototype,
    names,
    descriptors: names.map((name) => {
      const { value: _, ...rest } = Object.getOwnPropertyDescriptor(error, name) ?? {};
      return rest;
    }),
    json: JSON.stringify(error)
      .replaceAll(error.message.replaceAll(' ', '-'), 'REASON')
      .replaceAll(error.message, 'REASON'),
    text: String(error).replaceAll(error.message, 'REASON'),
  };
}

describe('refusals that differ only in one of three reasons (F20)', () => {
  test('the refusal does not depend on what is wrong with the token, its key, the member or the KMS', async () => {
    const a = await fleet.start(NATIVE);
    const python = await fleet.start({ format: 'python', accept: ['python'] });
    const stranger = new Fleet();
    const foreign = await stranger.start();
    const ended = seal(a);
    await fleet.clock.advance(5 * DAY);
    const revoked = seal(a);
    await a.codec.revoke(a.codec.health().sealingKey ?? '');
    await python.codec.refresh();
    const behind = await fleet.start(NATIVE);
    behind.ring.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await python.codec.refresh();
    const token = seal(a);
    const pythonToken = seal(python);
    const warm = seal(a);
    a.codec.unseal(warm);

    const refusals: Record<string, Error> = {};
    const note = (cause: string, member: Member | RequestStateCodec, bad: string): void => {
      refusals[cause] = refusal('codec' in member ? member.codec : member, bad);
    };
    note('no token', a, '');
    note('not a string', a, undefined as unknown as string);
    note('too long', a, 'sr1.'.padEnd(300_000, 'A'));
    note('another prefix', a, `sr2.${token.slice(4)}`);
    note('a format that is not accepted', python, token);
    note('padding', a, `${token}=`);
    note('cut short', a, token.slice(0, -3));
    note('another ring’s key', a, seal(foreign));
    note('an unknown key id', a, `sr1.AAAAAAAAAAAA${token.slice(16)}`);
    note('an expired key', a, ended);
    note('a revoked key', a, revoked);
    note('a key that this member has not read', behind, token);
    note('another salt', a, changedAt(token, 20));
    note('another commitment', a, changedAt(token, 50));
    note('another nonce', a, changedAt(token, 66));
    note('another ciphertext', a, changedAt(token, 82));
    note('another tag', a, changedAt(token, token.length - 4));
    note('a warm header, another tag', a, changedAt(warm, warm.length - 4));
    note('another purpose', a.codec.for('cursor'), token);
    note('a python token of a foreign key', a, `v1.${randomBytes(60).toString('base64url')}`);
    note('a python token, changed', a, changedAt(pythonToken, 40));
    fleet.kms.failing = 'disabled';
    await fleet.clock.advance(3 * 3_600);
    expect(a.codec.health().canUnseal).toBe(false);
    note('a KMS that refuses', a, token);
    await stranger.close();

    const all = Object.values(refusals);
    const shapes = new Set(all.map((error) => JSON.stringify(shapeOf(error))));
    expect([...shapes]).toHaveLength(1);
    expect(shapeOf(all[0] as Error)).toMatchObject({
      class: true,
      names: ['code', 'help', 'message', 'name', 'reason', 'stack'],
    });
    expect(new Set(all.map(({ message }) => message))).toEqual(
      new Set(['malformed', 'unknown key', 'authentication failed']),
    );
    const unknown = Object.keys(refusals).filter((cause) => refusals[cause]?.message === 'unknown key');
    // Tokens that only a holder of the key can make reveal nothing further.
    expect(unknown).toEqual([
      'another ring’s key',
      'an unknown key id',
      'an expired key',
      'a revoked key',
      'a key that this member has not read',
      'a python token of a foreign key',
      'a KMS that refuses',
    ]);
    for (const error of all) {
      for (const text of [inspect(error, { depth: 9, showHidden: true }), error.stack ?? '']) {
        for (const given of [token, warm, revoked, ended]) expect(text).not.toContain(given.slice(4, 40));
      }
    }
  });
});
