import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { expectThat, Finding, must, NotApplicable } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { CONTRACT, clause, copyOf, type KeyWrapperRequirement, type Made, OPTIONS } from './trial.ts';

/** A name that no key wrapper has. */
const ELSEWHERE = 'conformance-elsewhere';

/** Wrapped keys of other providers and of other KMS keys. */
export const OTHER_KEY_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must(
    'WRAP-OTHER-KEY',
    'What another KMS key wrapped is refused as corrupt, under our key’s name.',
    clause(2),
    async (trial) => {
      const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
      for (const [ours, theirs] of [
        [keyWrapper, other],
        [other, keyWrapper],
      ] as const) {
        const { wrapped } = await trial.make(ours);
        for (const made of await trial.makeEach(theirs)) {
          const relabelled = { ...wrapped, wrapped: made.wrapped.wrapped };
          await trial.expectCorrupt(ours, relabelled, 'another KMS key’s bytes under our key’s name');
        }
      }
    },
  ),
  must(
    'WRAP-OTHER-KEY-NAMED',
    'A wrapped key that names another KMS key is refused as corrupt.',
    clause(3),
    async (trial) => {
      const other = await trial.createOtherKey();
      const { keyWrapper, ...made } = await trial.createOpened();
      for (const theirs of await trial.makeEach(other)) {
        // A key that the other instance unwrapped must not be unwrapped here.
        await trial.expectOpens(other, theirs, 'another KMS key’s wrapped key, at its own instance,');
        await trial.expectCorrupt(keyWrapper, theirs.wrapped, 'another KMS key’s wrapped key');
        const relabelled = { ...made.wrapped, keyId: theirs.wrapped.keyId };
        await trial.expectCorrupt(keyWrapper, relabelled, 'our wrapped key under another KMS key’s name');
      }
      const { keyId } = made.wrapped;
      // The end of a name may be a version, which WRAP-VERSION-BINDS is about.
      const ends = keyWrapper.supports.keyVersions === true ? [] : [`${keyId}x`, keyId.slice(0, -1)];
      for (const name of [`x${keyId}`, keyId.slice(1), '', ...ends]) {
        const wrapped = { ...copyOf(made.wrapped), keyId: name };
        const what = 'our wrapped key under a keyId that is ours but for a character';
        await trial.refusal(() => keyWrapper.unwrap(wrapped, OPTIONS), what);
      }
    },
  ),
  must(
    'WRAP-FOREIGN-PROVIDER',
    'A wrapped key that names another provider is refused as corrupt.',
    clause(3),
    async (trial) => {
      const { keyWrapper, wrapped } = await trial.createOpened();
      for (const provider of foreignOf(keyWrapper)) {
        const words = `our wrapped key under the provider ${JSON.stringify(provider)}`;
        await trial.expectCorrupt(keyWrapper, { ...wrapped, provider }, words);
      }
    },
  ),
  must(
    'WRAP-BEFORE-CALL',
    'A wrapped key that names another provider or KMS key is refused before any call.',
    clause(3),
    async (trial) => {
      const unreachable = await trial.createUnreachable();
      const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
      const { wrapped } = await trial.make(keyWrapper);
      const where = 'with a service that cannot be reached';
      for (const provider of foreignOf(keyWrapper)) {
        await trial.expectCorrupt(unreachable, { ...wrapped, provider }, `another provider’s, ${where}`);
      }
      for (const theirs of await trial.makeEach(other)) {
        await trial.expectCorrupt(unreachable, theirs.wrapped, `another KMS key’s, ${where}`);
      }
    },
  ),
  must(
    'WRAP-OWNS',
    'owns distinguishes its own wrapped keys from others, at once and without a call.',
    `${CONTRACT}, owns`,
    async (trial) => {
      const keyWrapper = await trial.create();
      if (keyWrapper.owns === undefined) throw new NotApplicable('the key wrapper has no owns');
      const other = await trial.createOtherKey();
      const [made, theirs] = [await trial.makeEach(keyWrapper), await trial.makeEach(other)];
      // The one that cannot reach its service is to say the same.
      for (const asked of [keyWrapper, await trial.createUnasked()]) saysOf(asked, made, theirs);
      await trial.expectOpens(keyWrapper, made[0] as Made);
      saysOf(keyWrapper, made, theirs);
    },
  ),
];

/** Names of providers that only look like the wrapper's own, and one that does not. */
function foreignOf({ provider }: KeyWrapper): readonly string[] {
  return [ELSEWHERE, provider.toUpperCase(), `${provider}x`, provider.slice(0, -1), ` ${provider}`, `${provider}\n`];
}

/** @throws {Finding} unless owns is right about each. */
function saysOf(asked: KeyWrapper, made: readonly Made[], theirs: readonly Made[]): void {
  const others = made.flatMap(({ wrapped }) => foreignOf(asked).map((provider) => ({ ...wrapped, provider })));
  for (const [all, expected, what] of [
    [made.map(({ wrapped }) => wrapped), true, 'its own wrapped key'],
    [others, false, 'another provider’s wrapped key'],
    [theirs.map(({ wrapped }) => wrapped), false, 'another KMS key’s wrapped key'],
  ] as const) {
    for (const wrapped of all)
      expectThat(sayOf(asked, wrapped) === expected, `owns did not say ${expected} of ${what}`);
  }
}

function sayOf(asked: KeyWrapper, wrapped: WrappedKey): boolean {
  let answer: unknown;
  try {
    answer = asked.owns?.(wrapped);
  } catch (error) {
    throw new Finding(`owns threw ${describeThrown(error)}`);
  }
  expectThat(typeof answer === 'boolean', `owns returned ${kindOf(answer)}, not true or false`);
  return answer;
}
