import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { bothWays } from '../bytes.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { within } from '../trial.ts';
import { isKeyWrapperError } from './errors.ts';
import { copyOf, type KeyWrapperChecks, type KeyWrapperTrial, type Made, NOWHERE, OPTIONS } from './trial.ts';

/** Time for a call to notice that its service is unreachable, in milliseconds. */
const OUTAGE_MS = 1_000;
const ELSEWHERE = 'conformance-elsewhere';
/** Names of members that every object has, even one that serves as a lookup table of providers or keys. */
const OBJECT_NAMES = ['__proto__', 'constructor', 'toString'];

export const OTHER_KEY_CHECKS: KeyWrapperChecks = {
  'WRAP-OTHER-KEY': async (trial) => {
    const [keyWrapper, other] = [await trial.create(), await trial.create('createOtherKey')];
    for (const [ours, theirs] of bothWays(keyWrapper, other)) {
      const { wrapped } = await trial.make(ours);
      for (const made of await trial.makeEach(theirs)) {
        const relabelled = { ...wrapped, wrapped: made.wrapped.wrapped };
        await trial.expectCorrupt(ours, relabelled, 'another KMS key’s ciphertext under this key’s keyId');
      }
    }
    await atOnce(trial, keyWrapper, other);
  },
  'WRAP-OTHER-KEY-NAMED': async (trial) => {
    const other = await trial.create('createOtherKey');
    const { keyWrapper, ...made } = await trial.createOpened();
    for (const theirs of await trial.makeEach(other)) {
      // This instance must not unwrap a key that the other instance has just unwrapped.
      await trial.expectOpens(other, theirs, 'another KMS key’s wrapped key, unwrapped by its own instance,');
      await trial.expectCorrupt(keyWrapper, theirs.wrapped, 'another KMS key’s wrapped key');
      // An instance may learn the keys that it accepts with its first call.
      const fresh = await trial.create();
      await trial.expectCorrupt(fresh, theirs.wrapped, 'another KMS key’s wrapped key, given to a new instance,');
      const relabelled = { ...made.wrapped, keyId: theirs.wrapped.keyId };
      await trial.expectCorrupt(keyWrapper, relabelled, 'its own wrapped key under another KMS key’s name');
    }
    const { keyId } = made.wrapped;
    // The end of a name may be a version, which WRAP-VERSION-BINDS checks.
    const ends = keyWrapper.supports.keyVersions === true ? [] : [`${keyId}x`, keyId.slice(0, -1)];
    const names = [`x${keyId}`, keyId.slice(1), '', ...otherCaseOf(keyId), ...spellingsOf(keyId), ...ends];
    await trial.each(names, async (name) => {
      const wrapped = { ...copyOf(made.wrapped), keyId: name };
      const what = 'its own wrapped key under a keyId with one character changed';
      await trial.refusal(() => keyWrapper.unwrap(wrapped, OPTIONS), `${what}: ${JSON.stringify(name).slice(0, 200)}`);
    });
    await trial.each(OBJECT_NAMES, (name) =>
      trial.expectCorrupt(keyWrapper, { ...made.wrapped, keyId: name }, `its own wrapped key under the keyId ${name}`),
    );
  },
  'WRAP-FOREIGN-PROVIDER': async (trial) => {
    const { keyWrapper, wrapped } = await trial.createOpened();
    await trial.each(foreignOf(keyWrapper), (provider) => {
      const words = `its own wrapped key under the provider ${JSON.stringify(provider)}`;
      return trial.expectCorrupt(keyWrapper, { ...wrapped, provider }, words);
    });
  },
  'WRAP-BEFORE-CALL': async (trial) => {
    const unreachable = await trial.create('createUnreachable');
    const [keyWrapper, other] = [await trial.create(), await trial.create('createOtherKey')];
    const { wrapped } = await trial.make(keyWrapper);
    // A wrapper that has noticed the outage must still report these wrapped keys as corrupt.
    const ending = { ...OPTIONS, signal: AbortSignal.timeout(OUTAGE_MS) };
    const asking = trial.settle(() => unreachable.unwrap(copyOf(wrapped), ending), `unwrap, ${NOWHERE}`);
    await within(OUTAGE_MS, asking, undefined);
    for (const provider of foreignOf(keyWrapper)) {
      await trial.expectCorrupt(unreachable, { ...wrapped, provider }, `another provider’s wrapped key, ${NOWHERE}`);
    }
    for (const theirs of await trial.makeEach(other)) {
      await trial.expectCorrupt(unreachable, theirs.wrapped, `another KMS key’s wrapped key, ${NOWHERE}`);
    }
    for (const similar of similarlyNamed(keyWrapper, wrapped)) {
      await trial.expectCorrupt(unreachable, similar, `the wrapped key of a KMS key with a similar name, ${NOWHERE}`);
    }
  },
  'WRAP-OWNS': async (trial) => {
    const keyWrapper = await trial.create();
    if (keyWrapper.owns === undefined) throw new NotApplicable('the key wrapper has no owns');
    const other = await trial.create('createOtherKey');
    const [made, theirs] = [await trial.makeEach(keyWrapper), await trial.makeEach(other)];
    const unasked = await trial.createUnasked();
    const one = made[0] as Made;
    // The instance with an unreachable service must give the same answers, and both instances must repeat them after
    // valid and invalid calls.
    for (const asked of [keyWrapper, unasked]) {
      expectOwns(asked, made, theirs);
      const good = (): unknown => asked.unwrap(copyOf(one.wrapped), OPTIONS);
      for (const start of [good, ...trial.badUnwraps(asked, one).map(([, bad]) => bad)]) {
        await trial.settle(start, 'unwrap');
        expectOwns(asked, made, theirs);
      }
    }
    if (trial.target.createUnreachable !== undefined) await expectOneAnswer(trial, unasked, one);
  },
};

/** Number of concurrent calls of each of two instances. */
const AT_ONCE = 4;

/** Instances for two KMS keys must not share a selected key or a connection that belongs to one of them. */
async function atOnce(trial: KeyWrapperTrial, ...both: readonly [KeyWrapper, KeyWrapper]): Promise<void> {
  const pairs = Array.from({ length: AT_ONCE }, () => both).flat();
  const makes = await trial.all(pairs.map(async (maker) => ({ maker, made: await trial.makeEach(maker) })));
  const all = makes.flatMap(({ maker, made }) => made.map((one) => ({ maker, ...one })));
  const what = 'a wrapped key made while another instance called another KMS key';
  await trial.all(all.map(({ maker, ...made }) => trial.expectOpens(maker, made, what)));
}

/** Names that an adapter may fail to parse. */
const ODD_NAMES = ['', '/', ':', '%', '%zz', '\0', 'https://', '🔑', 'x'.repeat(2_000)];

/** The wrapped key with its KMS key renamed, if its keyId begins with the name of the KMS key. */
function renamed({ keyId }: KeyWrapper, wrapped: WrappedKey, names: readonly string[]): readonly WrappedKey[] {
  if (!wrapped.keyId.startsWith(keyId)) return [];
  const version = wrapped.keyId.slice(keyId.length);
  return names.map((name) => ({ ...copyOf(wrapped), keyId: name + version }));
}

/**
 * The wrapped key under names that resemble the name of its KMS key: with another prefix or suffix, on another line, or
 * matched if a separator acts as a wildcard. Leaves the end of a name unchanged if it may be a version.
 */
function similarlyNamed(keyWrapper: KeyWrapper, wrapped: WrappedKey): readonly WrappedKey[] {
  const { keyId } = keyWrapper;
  const version = wrapped.keyId.slice(keyId.length);
  const longer = /^[a-z0-9]/i.test(version) ? [] : [`${keyId}x`];
  const shorter = /^[^a-z0-9]/i.test(version) && /[a-z0-9]$/i.test(keyId) ? [keyId.slice(0, -1)] : [];
  return renamed(keyWrapper, wrapped, [
    ...longer,
    ...shorter,
    ...OBJECT_NAMES,
    `x${keyId}`,
    `x\n${keyId}`,
    ...separatedBy(keyId),
    ...otherPlaces(keyId),
  ]);
}

/**
 * Names of other KMS keys that match if a separator acts as a wildcard. The replacement is q and not x, because 0x
 * starts a number.
 */
function separatedBy(keyId: string): readonly string[] {
  return [...keyId.matchAll(/[^a-z0-9]/gi)].map(({ index }) => `${keyId.slice(0, index)}q${keyId.slice(index + 1)}`);
}

/** Names of KMS keys elsewhere: with another account, project or location. Leaves out other regions of the same key. */
function otherPlaces(keyId: string): readonly string[] {
  const parts = keyId.split('/');
  return parts
    .slice(0, -1)
    .flatMap((part, i) => (/^[a-z]\w*-\w|^$/i.test(part) ? [] : [parts.with(i, `${part}q`).join('/')]));
}

/** Variants of a name that an adapter may accept: with a prefix, a different first character or a different separator. */
function spellingsOf(keyId: string): readonly string[] {
  const [first = ''] = keyId;
  const encoded = [`%${first.charCodeAt(0).toString(16)}`, String.fromCharCode(first.charCodeAt(0) + 0xfee0)];
  const names = ['\n', ' ', `x\n`, 'x/../'].map((before) => before + keyId);
  return [...names, ...encoded.map((one) => one + keyId.slice(1)), ...separatedBy(keyId)];
}

/** The same name with its first letter in the other case, if it starts with a letter. */
function otherCaseOf(keyId: string): readonly string[] {
  const [first = ''] = keyId;
  const names = [first.toUpperCase(), first.toLowerCase()].map((letter) => `${letter}${keyId.slice(1)}`);
  return names.filter((name) => name !== keyId);
}

/** Names of other providers, some of which resemble the name of the wrapper’s own. */
function foreignOf({ provider }: KeyWrapper): readonly string[] {
  const alike = [provider.toUpperCase(), `${provider}x`, provider.slice(0, -1), ` ${provider}`, `${provider}\n`];
  const names = [ELSEWHERE, 'local', 'aws-kms', '', ...alike, ...OBJECT_NAMES];
  return names.filter((name) => name !== provider);
}

/** @throws {Finding} if owns returns a wrong result. */
function expectOwns(asked: KeyWrapper, made: readonly Made[], theirs: readonly Made[]): void {
  const ours = made.map(({ wrapped }) => wrapped);
  const providers = ours.flatMap((one) => foreignOf(asked).map((provider) => ({ ...one, provider })));
  for (const [all, expected, what] of [
    [ours, true, 'its own wrapped key'],
    [providers, false, 'another provider’s wrapped key'],
    [theirs.map(({ wrapped }) => wrapped), false, 'another KMS key’s wrapped key'],
    [ours.flatMap((one) => similarlyNamed(asked, one)), false, 'the wrapped key of a KMS key with a similar name'],
    [ours.slice(0, 1).flatMap((one) => ODD_NAMES.map((keyId) => ({ ...one, keyId }))), false, 'a key with an odd name'],
  ] as const) {
    for (const wrapped of all) {
      let answer: unknown;
      try {
        answer = asked.owns?.(wrapped);
      } catch (error) {
        throw new Finding(`owns threw ${describeThrown(error)}`);
      }
      expectThat(typeof answer === 'boolean', `owns returned ${kindOf(answer)}, not true or false`);
      expectThat(answer === expected, `owns did not return ${expected} for ${what}`);
    }
  }
}

/** Expects unwrap not to refuse, before any call, a wrapped key with another spelling of keyId that owns accepts. */
async function expectOneAnswer(trial: KeyWrapperTrial, unreachable: KeyWrapper, { wrapped }: Made): Promise<void> {
  const { keyId } = unreachable;
  const names = [keyId.toUpperCase(), keyId.toLowerCase(), ...otherCaseOf(keyId), ...spellingsOf(keyId)];
  const others = names.filter((name) => name !== keyId);
  for (const other of renamed(unreachable, wrapped, others)) {
    if (unreachable.owns?.(other) === false) continue;
    const what = 'unwrap of its own wrapped key with a different spelling of keyId';
    const outcome = await trial.settle(() => unreachable.unwrap(other, OPTIONS), what);
    const isRefused = 'error' in outcome && isKeyWrapperError(outcome.error) && outcome.error.kind === 'corrupt';
    expectThat(
      !isRefused,
      'owns returned true for a different spelling of keyId, which unwrap refuses before any call',
    );
  }
}
