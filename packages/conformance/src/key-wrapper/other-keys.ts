import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { bothWays } from '../bytes.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { copyOf, type KeyWrapperChecks, type Made, OPTIONS } from './trial.ts';

const ELSEWHERE = 'conformance-elsewhere';
/** Names that every object answers to, as a table of providers or keys does. */
const OBJECT_NAMES = ['__proto__', 'constructor', 'toString'];

export const OTHER_KEY_CHECKS: KeyWrapperChecks = {
  'WRAP-OTHER-KEY': async (trial) => {
    const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
    for (const [ours, theirs] of bothWays(keyWrapper, other)) {
      const { wrapped } = await trial.make(ours);
      for (const made of await trial.makeEach(theirs)) {
        const relabelled = { ...wrapped, wrapped: made.wrapped.wrapped };
        await trial.expectCorrupt(ours, relabelled, 'another KMS key’s bytes under our key’s name');
      }
    }
  },
  'WRAP-OTHER-KEY-NAMED': async (trial) => {
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
    for (const name of [`x${keyId}`, keyId.slice(1), '', ...otherCaseOf(keyId), ...spellingsOf(keyId), ...ends]) {
      const wrapped = { ...copyOf(made.wrapped), keyId: name };
      const what = 'our wrapped key under a keyId that is ours but for a character';
      await trial.refusal(() => keyWrapper.unwrap(wrapped, OPTIONS), `${what}: ${JSON.stringify(name).slice(0, 200)}`);
    }
    for (const name of OBJECT_NAMES) {
      await trial.expectCorrupt(
        keyWrapper,
        { ...made.wrapped, keyId: name },
        `our wrapped key under the keyId ${name}`,
      );
    }
  },
  'WRAP-FOREIGN-PROVIDER': async (trial) => {
    const { keyWrapper, wrapped } = await trial.createOpened();
    for (const provider of foreignOf(keyWrapper)) {
      const words = `our wrapped key under the provider ${JSON.stringify(provider)}`;
      await trial.expectCorrupt(keyWrapper, { ...wrapped, provider }, words);
    }
  },
  'WRAP-BEFORE-CALL': async (trial) => {
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
    for (const longer of longerNamed(keyWrapper, wrapped)) {
      await trial.expectCorrupt(unreachable, longer, `that of a KMS key with a longer name, ${where}`);
    }
  },
  'WRAP-OWNS': async (trial) => {
    const keyWrapper = await trial.create();
    if (keyWrapper.owns === undefined) throw new NotApplicable('the key wrapper has no owns');
    const other = await trial.createOtherKey();
    const [made, theirs] = [await trial.makeEach(keyWrapper), await trial.makeEach(other)];
    // The one that cannot reach its service is to say the same.
    for (const asked of [keyWrapper, await trial.createUnasked()]) saysOf(asked, made, theirs);
    await trial.expectOpens(keyWrapper, made[0] as Made);
    saysOf(keyWrapper, made, theirs);
  },
};

/** The same of a KMS key whose name starts with ours, where the version follows the name after a separator. */
function longerNamed({ keyId }: KeyWrapper, wrapped: WrappedKey): readonly WrappedKey[] {
  const version = wrapped.keyId.slice(keyId.length);
  if (!wrapped.keyId.startsWith(keyId) || /^[a-z0-9]/i.test(version)) return [];
  return [{ ...copyOf(wrapped), keyId: `${keyId}x${version}` }];
}

/** Other spellings of a name that a reader may take for it: what stands before it, and how its head is written. */
function spellingsOf(keyId: string): readonly string[] {
  const [first = ''] = keyId;
  const encoded = [`%${first.charCodeAt(0).toString(16)}`, String.fromCharCode(first.charCodeAt(0) + 0xfee0)];
  const names = ['\n', ' ', `x\n`, 'x/../'].map((before) => before + keyId);
  // Names of other keys, where a separator is left to stand for any character: not x, which makes a number of a zero.
  const separated = [...keyId.matchAll(/[^a-z0-9]/gi)].map(
    ({ index }) => `${keyId.slice(0, index)}q${keyId.slice(index + 1)}`,
  );
  return [...names, ...encoded.map((one) => one + keyId.slice(1)), ...separated];
}

/** The same name in other case, where it starts with a letter. */
function otherCaseOf(keyId: string): readonly string[] {
  const [first = ''] = keyId;
  const names = [first.toUpperCase(), first.toLowerCase()].map((letter) => `${letter}${keyId.slice(1)}`);
  return names.filter((name) => name !== keyId);
}

/** Names of providers that only look like the wrapper’s own, and one that does not. */
function foreignOf({ provider }: KeyWrapper): readonly string[] {
  const other = provider === 'local' ? 'aws-kms' : 'local';
  const alike = [provider.toUpperCase(), `${provider}x`, provider.slice(0, -1), ` ${provider}`, `${provider}\n`];
  return [ELSEWHERE, other, '', ...alike, ...OBJECT_NAMES];
}

function saysOf(asked: KeyWrapper, made: readonly Made[], theirs: readonly Made[]): void {
  const others = made.flatMap(({ wrapped }) => foreignOf(asked).map((provider) => ({ ...wrapped, provider })));
  for (const [all, expected, what] of [
    [made.map(({ wrapped }) => wrapped), true, 'its own wrapped key'],
    [others, false, 'another provider’s wrapped key'],
    [theirs.map(({ wrapped }) => wrapped), false, 'another KMS key’s wrapped key'],
    [
      made.flatMap(({ wrapped }) => longerNamed(asked, wrapped)),
      false,
      'the wrapped key of a KMS key with a longer name',
    ],
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
