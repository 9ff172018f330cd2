import { describe, expect, test, vi } from 'vitest';
import { KeyWrapperError, type KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import type { KeyWraps } from '../../src/kms/wraps.ts';
import { isDead, type LearnAnewOptions, LineageError, learnAnew, pastSigners } from '../../src/member/learn-anew.ts';
import type { RingEntry } from '../../src/ring/document.ts';
import type { Judgement } from '../../src/ring/facts.ts';
import { createSnapshot } from '../../src/ring/snapshot.ts';
import { documentWith, judgementOf, revocationBy } from '../support/certified.ts';
import { ownKey } from '../support/known-keys.ts';
import { entry, key, numberOf } from '../support/numbered-keys.ts';

/** Each key vouched for by the one before it. */
const chain = (count: number): RingEntry[] => Array.from({ length: count }, (_, i) => entry(i + 1, i === 0 ? [] : [i]));
const revokedBy = (n: number, ...by: readonly number[]) => ({ revoked: revocationBy(key(n).id, by.map(key)) });

interface Facts extends Partial<Judgement> {
  readonly failing?: Readonly<Record<number, KeyWrapperErrorKind>>;
}

function setUp({ failing = {}, ...more }: Facts = {}) {
  const calls: number[] = [];
  const unwrap = vi.fn<KeyWraps['unwrap']>(async (given) => {
    const n = numberOf(given);
    calls.push(n);
    const kind = failing[n];
    if (kind !== undefined) throw new KeyWrapperError(kind, { provider: 'kms', operation: 'unwrap' });
    return { held: key(n).held, wrap: given.wraps[0] as RingEntry['wraps'][0] };
  });
  const onKmsCheck = vi.fn<() => void>();
  const judgement = (): Judgement => judgementOf(more);
  const wraps = { unwrap } as unknown as KeyWraps;
  const options: LearnAnewOptions = { foreground: true, wraps, unwrapped: new Map(), onKmsCheck, judgement };
  return { options, calls, onKmsCheck };
}

/** The numbers of the keys that are learned, those that are revoked as negative; or the kind of the error. */
async function learnedFrom(entries: readonly RingEntry[], facts?: Facts) {
  const { options, calls, onKmsCheck } = setUp(facts);
  const result = await learnAnew(documentWith(...entries), options).then(
    ({ keys }) => keys.map((each) => (each.revoked ? -numberOf(each) : numberOf(each))),
    (error: KeyWrapperError | LineageError) => (error instanceof LineageError ? `${error.kind}: lineages` : error.kind),
  );
  return { result, calls, checks: onKmsCheck.mock.calls.length };
}

describe('the first read of a ring', () => {
  test('the newest key is unwrapped first, and then the others, four at a time', async () => {
    const { result, calls, checks } = await learnedFrom(chain(7));
    expect([result, calls, checks]).toEqual([[1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1], 7]);
  });

  test.each<readonly [string, Facts['failing'], unknown, readonly number[]]>([
    ['a temporary failure of the newest key ends the read', { 5: 'throttled' }, 'throttled', [5]],
    [
      'a temporary failure in a group of keys ends the read after that group',
      { 3: 'unavailable' },
      'unavailable',
      [5, 4, 3, 2, 1],
    ],
    ['a corrupt root is left out', { 1: 'corrupt' }, [2, 3, 4, 5], [5, 4, 3, 2, 1]],
    ['a refused root is left out', { 1: 'denied' }, [2, 3, 4, 5], [5, 4, 3, 2, 1]],
    ['a corrupt link leaves two lineages', { 3: 'corrupt' }, 'corrupt: lineages', [5, 4, 3, 2, 1]],
    [
      'a ring with only corrupt keys is an error',
      { 1: 'corrupt', 2: 'corrupt', 3: 'corrupt', 4: 'corrupt', 5: 'corrupt' },
      'corrupt',
      [5, 4, 3, 2, 1],
    ],
    [
      'a refusal takes precedence over corruption',
      { 1: 'corrupt', 2: 'denied', 3: 'corrupt', 4: 'corrupt', 5: 'corrupt' },
      'denied',
      [5, 4, 3, 2, 1],
    ],
  ])('%s', async (_, failing = {}, result, calls) => {
    expect(await learnedFrom(chain(5), { failing })).toMatchObject({ result, calls });
  });

  test('a temporary failure ends the first read before the next four keys are unwrapped', async () => {
    const { result, calls } = await learnedFrom(chain(7), { failing: { 5: 'unavailable' } });
    expect([result, calls]).toEqual(['unavailable', [7, 6, 5, 4, 3]]);
  });

  test.each<readonly [string, readonly RingEntry[], unknown, readonly number[]]>([
    [
      'a revocation that a newer key certifies needs no unwrap',
      [entry(1, [], revokedBy(1, 2)), entry(2, [1])],
      [-1, 2],
      [2],
    ],
    [
      'a revocation by the revoked key needs an unwrap',
      [entry(1, [], revokedBy(1, 1)), entry(2, [1])],
      [-1, 2],
      [2, 1],
    ],
    ['a claim that no key certifies is ignored', [entry(1, [], revokedBy(1, 8)), entry(2, [1])], [1, 2], [2, 1]],
    ['a revoked key of another lineage is left out', [entry(1, [], revokedBy(1, 1)), entry(2, [])], [2], [2, 1]],
    ['two lineages are an error', [entry(1, []), entry(2, [])], 'corrupt: lineages', [2, 1]],
    [
      'two lineages are an error, even if a key of one is revoked',
      [entry(1, [], revokedBy(1, 1)), entry(2, [1]), entry(3, [])],
      'corrupt: lineages',
      [3, 2, 1],
    ],
    ['keys that are all revoked are learned as such', [entry(1, [], revokedBy(1, 1))], [-1], [1]],
    [
      'an expired key can link two keys',
      [entry(1, []), entry(2, [1], { opensUntil: judgementOf().nowMs }), entry(3, [2])],
      [1, 3],
      [3, 1, 2],
    ],
  ])('%s', async (_, entries, result, calls) => {
    expect(await learnedFrom(entries)).toMatchObject({ result, calls });
  });

  test.each<readonly [string, Facts, unknown]>([
    ['keys that the pin of this member refuses are an error', { isPinnedOut: () => true }, 'corrupt'],
    ['keys that have all expired are not learned', { nowMs: key(2).opensUntil }, []],
    ['keys created in the future by this clock may become usable', { nowMs: key(1).created - 1e6 }, 'unavailable'],
  ])('%s', async (_, facts, result) => {
    expect(await learnedFrom(chain(2), facts)).toMatchObject({ result });
  });

  test('an entry is not unwrapped again in the next attempt, unless its times were changed', async () => {
    const { options, calls } = setUp();
    const entries = chain(2);
    await learnAnew(documentWith(...entries), options);
    await learnAnew(documentWith(...entries), options);
    expect(calls).toEqual([2, 1]);
    const changed = { ...(entries[1] as RingEntry), opensUntil: key(2).opensUntil + 1_000 };
    await learnAnew(documentWith(...entries.slice(0, 1), changed), options).catch(() => undefined);
    expect(calls).toEqual([2, 1, 2]);
  });
});

describe('the authenticators of a ring that has expired', () => {
  const live = judgementOf().nowMs;
  const ended = key(3).opensUntil;

  test.each<readonly [string, readonly RingEntry[], Facts, unknown]>([
    ['are those of all entries', chain(3), { nowMs: ended }, [3, 2, 1]],
    ['show which key was revoked', [entry(1, [], revokedBy(1, 1)), entry(2, [1])], { nowMs: live }, [2, -1]],
    ['are those that can be unwrapped', chain(3), { nowMs: ended, failing: { 2: 'corrupt' } }, [3, 1]],
    [
      'are not learned yet if a failure is temporary',
      chain(3),
      { nowMs: ended, failing: { 2: 'throttled' } },
      'throttled',
    ],
    [
      'are missing if the KMS refuses to unwrap the expired keys',
      chain(1),
      { nowMs: ended, failing: { 1: 'denied' } },
      [],
    ],
    [
      'cannot be learned if the KMS refuses to unwrap a live key',
      chain(1),
      { nowMs: live, failing: { 1: 'denied' } },
      'denied',
    ],
    ['are learned if at least one key can be unwrapped', chain(2), { nowMs: live, failing: { 2: 'denied' } }, [1]],
  ])('the authenticators %s', async (_, entries, facts, expected) => {
    const signers = pastSigners(documentWith(...entries), setUp(facts).options);
    const result = await signers.then(
      (all) => all.map((each) => (each.revoked ? -numberOf(each) : numberOf(each))),
      (error: KeyWrapperError) => error.kind,
    );
    expect(result).toEqual(expected);
  });
});

test('a ring is dead if it has no key that is held and has not expired', () => {
  const own = ownKey(key(1));
  const dead = [[], [{ ...own, held: undefined }], [own]].map((keys) =>
    isDead(createSnapshot(keys), own.opensUntil - 1),
  );
  expect(dead).toEqual([true, true, false]);
  expect(isDead(createSnapshot([own]), own.opensUntil)).toBe(true);
});
