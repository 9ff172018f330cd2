import { expect, test } from 'vitest';
import { problemsOf } from '../../src/member/problems.ts';
import { createSnapshot, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { entryBy, T0 } from '../support/certified.ts';
import { one, ownKey, two } from '../support/known-keys.ts';

const now = { wallMs: T0 + 7_200_000, steadyMs: 0 };
const usable = createSnapshot([ownKey(one), { ...ownKey(two), held: undefined }]);

interface Facts {
  readonly role?: 'member' | 'reader';
  readonly snapshot?: RingSnapshot;
  readonly trouble?: string;
  readonly disputedBy?: 'kms' | 'store';
  readonly isContested?: boolean;
  readonly isForeign?: boolean;
  readonly isDead?: boolean;
  readonly keyCount?: number;
}

function kindsOf(facts: Facts): readonly string[] {
  const { role = 'member', snapshot = usable, isContested = false, isForeign = false } = facts;
  const parts = {
    role,
    view: { snapshot, wallMs: () => now.wallMs },
    sync: { repairs: { isForeign, isContested: () => isContested } },
    writer: { isDead: facts.isDead ?? false, keyCount: facts.keyCount ?? 1 },
    clock: { trouble: () => facts.trouble, disputedBy: () => facts.disputedBy },
  };
  const problems = problemsOf(parts as unknown as Parameters<typeof problemsOf>[0], now);
  for (const { detail, remedy } of problems)
    expect([detail, remedy]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
  return problems.map(({ kind }) => kind);
}

test.each<readonly [string, Facts, readonly string[]]>([
  ['a member without a problem', {}, []],
  ['an unconfirmed clock', { trouble: 'stepped' }, ['clock']],
  ['a service that disagrees', { disputedBy: 'store' }, ['service-clock']],
  ['a place that something else writes to', { isContested: true }, ['contested']],
  ['another ring, while a key can be used', { isForeign: true }, []],
  ['another ring, and no usable key', { isForeign: true, snapshot: createSnapshot([]) }, ['foreign-ring']],
  [
    'an entry that no key wrapper can unwrap',
    { snapshot: createSnapshot(usable.keys, [], [entryBy(two, [])]) },
    ['unreadable-key'],
  ],
  ['a ring without a key that seals', { isDead: true }, ['no-sealing-key']],
  ['a reader of such a ring', { isDead: true, role: 'reader' }, []],
  ['47 keys', { keyCount: 47 }, []],
  ['48 keys', { keyCount: 48 }, ['nearly-full']],
  ['several at once', { trouble: 'stepped', isContested: true, keyCount: 49 }, ['clock', 'contested', 'nearly-full']],
])('problems are listed, each with its remedy: %s', (_, facts, kinds) => {
  expect(kindsOf(facts)).toEqual(kinds);
});

test('the details of problems name the service, the key and the number of keys', () => {
  const view = { snapshot: createSnapshot([], [], [entryBy(two, [])]), wallMs: () => now.wallMs };
  const repairs = { isForeign: false, isContested: () => false };
  const clock = { trouble: () => undefined, disputedBy: () => 'kms' };
  const parts = { role: 'reader', view, sync: { repairs }, writer: { isDead: false, keyCount: 50 }, clock };
  const details = problemsOf(parts as unknown as Parameters<typeof problemsOf>[0], now).map(({ detail }) => detail);
  expect(details).toEqual([/the KMS/, new RegExp(two.id), /50 of 64/].map((part) => expect.stringMatching(part)));
});
