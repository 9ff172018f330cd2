import { types } from 'node:util';
import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { flipped, sameBytes } from '../bytes.ts';
import { noteBuiltIns } from '../observe.ts';
import { type Checks, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { isObject, kindOf } from '../thrown.ts';
import { Trial, within } from '../trial.ts';
import { expectKind, isKeyWrapperError } from './errors.ts';
import type { KeyWrapperControl, KeyWrapperSupport, KeyWrapperTarget } from './target.ts';

export type KeyWrapperChecks = Checks<KeyWrapperTrial>;

/** The default context. A policy of a service may restrict a caller to this ring's name. */
export const CONTEXT: WrapOptions['context'] = Object.freeze({
  'sealring:ring': 'conformance',
  'sealring:purpose': 'data-key',
});
/** The default options of calls. */
export const OPTIONS: WrapOptions = Object.freeze({ context: CONTEXT });

/** How a finding describes a call to an unreachable service. */
export const NOWHERE = 'with an unreachable service';

/** Time limit for a call that must end at once, even on a busy machine, in milliseconds. */
const PROMPT_MS = 5_000;

export interface Call {
  readonly name: 'wrap' | 'unwrap' | 'generate' | 'sign';
  readonly start: (signal?: AbortSignal, onServiceDate?: WrapOptions['onServiceDate']) => unknown;
}

export interface Made {
  readonly dataKey: Uint8Array;
  readonly wrapped: WrappedKey;
}

/** A result of {@link KeyWrapperTrial.makeEach}, with the name of the call. */
export type MadeBy = Made & { by: string };
type Options = Partial<WrapOptions>;

export type BadUnwraps = readonly (readonly [words: string, start: () => unknown])[];

/** The tools of a key wrapper check: new instances, calls and findings. */
export class KeyWrapperTrial extends Trial {
  readonly target: KeyWrapperTarget;
  readonly supports: Required<KeyWrapperSupport>;
  #doesGenerate: Promise<boolean> | undefined;
  #isGeneratedFirst = false;

  constructor(target: KeyWrapperTarget, seed: number) {
    super(seed);
    this.target = target;
    noteBuiltIns(target);
    const { remote = true, versions = true, signatures = true } = target.supports ?? {};
    this.supports = { remote, versions, signatures };
  }

  async create(name: 'create' | 'createOtherKey' | 'createUnreachable' = 'create'): Promise<KeyWrapper> {
    if (this.target[name] === undefined) throw new NotApplicable('supports.remote is false');
    const keyWrapper = await this.start<KeyWrapper>(name, () => this.target[name]?.(), 'keyWrapper', [
      'wrap',
      'unwrap',
    ]);
    expectThat(isObject(keyWrapper.supports), `${name}: no supports`);
    return keyWrapper;
  }

  /** An instance on which any call to its service would fail, since the service, if there is one, is unreachable. */
  createUnasked(): Promise<KeyWrapper> {
    return this.create(this.target.createUnreachable && 'createUnreachable');
  }

  /** A key wrapper and a wrapped key that it has unwrapped once, so that checks cover its cache. */
  async createOpened(): Promise<Made & { readonly keyWrapper: KeyWrapper }> {
    const keyWrapper = await this.create();
    const made = await this.make(keyWrapper);
    await this.expectOpens(keyWrapper, made);
    return { keyWrapper, ...made };
  }

  control<Name extends keyof KeyWrapperControl>(...names: readonly Name[]): Pick<Required<KeyWrapperControl>, Name> {
    const { control = {} } = this.target;
    const missing = names.find((name) => control[name] === undefined);
    if (missing !== undefined) throw new NotApplicable(`the target has no control.${missing}`);
    const named = names.map((name) => [name, () => this.wait(`control.${name}`, () => control[name]?.())]);
    return Object.fromEntries(named) as Required<KeyWrapperControl>;
  }

  /** Changes KMS key A for the duration of `work`. */
  async whileChanged(
    [change, undo]: readonly ['disable', 'enable'] | readonly ['deny', 'allow'],
    work: () => Promise<void>,
  ): Promise<void> {
    const control = this.control(change, undo);
    await control[change]();
    try {
      await work();
    } finally {
      await control[undo]();
    }
  }

  /** Bytes as the ring passes them: a data key, followed by a hash of the context if the service binds none. */
  dataKey(keyWrapper: KeyWrapper): Uint8Array {
    return this.random.bytes(keyWrapper.supports.context ? 32 : 64);
  }

  async make(keyWrapper: KeyWrapper, options: Options = {}): Promise<Made> {
    const dataKey = this.dataKey(keyWrapper);
    return { dataKey, wrapped: await this.wrap(keyWrapper, dataKey, options) };
  }

  /** Every call of the key wrapper that reaches its service, with new arguments each time. */
  calls(keyWrapper: KeyWrapper, { dataKey, wrapped }: Made): readonly Call[] {
    const all: readonly Call[] = [
      { name: 'wrap', start: (...given) => keyWrapper.wrap(Uint8Array.from(dataKey), optionsOf(...given)) },
      { name: 'unwrap', start: (...given) => keyWrapper.unwrap(copyOf(wrapped), optionsOf(...given)) },
      { name: 'generate', start: (...given) => keyWrapper.generate?.(optionsOf(...given)) },
      { name: 'sign', start: (signal) => keyWrapper.sign?.(Uint8Array.from(dataKey), signal && { signal }) },
    ];
    return all.filter(({ name }) => keyWrapper[name] !== undefined);
  }

  /** Unwraps that must be refused as corrupt, each of which differs from the valid one in one respect. */
  badUnwraps(keyWrapper: KeyWrapper, { wrapped }: Made, context: WrapOptions['context'] = CONTEXT): BadUnwraps {
    const unwrap = (change: Partial<WrappedKey>, options: WrapOptions = { context }) => {
      return (): unknown => keyWrapper.unwrap({ ...copyOf(wrapped), ...change }, options);
    };
    const bytes = wrapped.wrapped;
    const other = { context: { ...context, more: '' } };
    return [
      ['of a wrapped key with a different last byte', unwrap({ wrapped: flipped(bytes, bytes.length - 1) })],
      ['of a wrapped key with a different first byte', unwrap({ wrapped: flipped(bytes, 0) })],
      ['of another provider’s wrapped key', unwrap({ provider: 'conformance-elsewhere' })],
      ...(keyWrapper.supports.context ? [['under another context', unwrap({}, other)] as const] : []),
    ];
  }

  /** Those of {@link badUnwraps} that a new instance refuses. Other requirements report the rest. */
  async refusedUnwraps(...[keyWrapper, ...given]: Parameters<KeyWrapperTrial['badUnwraps']>): Promise<BadUnwraps> {
    const alone = this.badUnwraps(await this.create(), ...given);
    const outcomes = await Promise.all(alone.map(([words, start]) => this.settle(start, words)));
    const isCorrupt = outcomes.map(
      (one) => 'error' in one && isKeyWrapperError(one.error) && one.error.kind === 'corrupt',
    );
    return this.badUnwraps(keyWrapper, ...given).filter((_, i) => isCorrupt[i]);
  }

  /** Default options, and at times those that every call can have. */
  #complete(options: Options): WrapOptions {
    return { ...OPTIONS, ...this.someOptions(), ...options };
  }

  /** Wraps a copy, and checks the shape of the wrapped key. @throws {Finding} if the call is refused. */
  async wrap(keyWrapper: KeyWrapper, dataKey: Uint8Array, options: Options = {}, what = 'wrap'): Promise<WrappedKey> {
    const given = Uint8Array.from(dataKey);
    return wrappedKeyOf(await this.answer(() => keyWrapper.wrap(given, this.#complete(options)), what), what);
  }

  /** A generated data key and its wrapped key. @throws {Finding} if the call is refused or returns another value. */
  async generate(keyWrapper: KeyWrapper, options: Options = {}): Promise<Made> {
    const answer = await this.answer(() => keyWrapper.generate?.(this.#complete(options)), 'generate');
    return generatedOf(answer, keyWrapper);
  }

  /** A wrapped key from wrap, and one from generate if generate works; WRAP-GENERATE checks whether it does. */
  async makeEach(
    keyWrapper: KeyWrapper,
    options: Options = {},
    { isGeneratedFirst = this.#isGeneratedFirst }: { readonly isGeneratedFirst?: boolean } = {},
  ): Promise<readonly MadeBy[]> {
    const wrap = async (): Promise<MadeBy> => ({ by: 'wrap', ...(await this.make(keyWrapper, options)) });
    if (!(await this.#generates(keyWrapper))) return [await wrap()];
    const generate = async (): Promise<MadeBy> => {
      const { dataKey, wrapped } = await this.generate(keyWrapper, options);
      return { by: 'generate', dataKey: Uint8Array.from(dataKey), wrapped };
    };
    // Each is called first at times, because a call can depend on the one before.
    this.#isGeneratedFirst = !this.#isGeneratedFirst;
    if (!isGeneratedFirst) return [await wrap(), await generate()];
    const generated = await generate();
    return [await wrap(), generated];
  }

  /** Like {@link makeEach}, but for each wrapped key, a separate instance made it and has unwrapped it once. */
  async createEach(): Promise<readonly (MadeBy & { readonly keyWrapper: KeyWrapper })[]> {
    const [first, second] = [await this.create(), await this.create()];
    const [, ...others] = await this.makeEach(second);
    const all = [
      { by: 'wrap', keyWrapper: first, ...(await this.make(first)) },
      ...others.map((made) => ({ ...made, keyWrapper: second })),
    ];
    for (const { keyWrapper, ...made } of all) await this.expectOpens(keyWrapper, made);
    return all;
  }

  /** Whether the wrapped key of a generated data key unwraps to that data key. Checked only once. */
  async #generates(keyWrapper: KeyWrapper): Promise<boolean> {
    if (keyWrapper.generate === undefined) return false;
    this.#doesGenerate ??= this.generate(keyWrapper)
      .then((made) => this.expectOpens(keyWrapper, made))
      .then(
        () => true,
        () => false,
      );
    return this.#doesGenerate;
  }

  /** Unwraps a valid wrapped key. @throws {Finding} if it is refused. */
  async unwrap(
    keyWrapper: KeyWrapper,
    wrapped: WrappedKey,
    options: Options = {},
    what = 'its own wrapped key',
  ): Promise<Uint8Array> {
    const name = `unwrap of ${what}`;
    return bytesOf(await this.answer(() => keyWrapper.unwrap(copyOf(wrapped), this.#complete(options)), name), name);
  }

  async expectOpens(
    keyWrapper: KeyWrapper,
    { dataKey, wrapped }: Made,
    what = 'its own wrapped key',
    options?: Options,
  ): Promise<void> {
    const back = await this.unwrap(keyWrapper, wrapped, options, what);
    expectThat(sameBytes(back, dataKey), `${what} unwraps to ${back.length} other bytes`);
  }

  async expectCorrupt(keyWrapper: KeyWrapper, wrapped: WrappedKey, what: string, options: Options = {}): Promise<void> {
    const start = (): unknown => keyWrapper.unwrap(copyOf(wrapped), this.#complete(options));
    expectKind(await this.refusal(start, what), 'corrupt', what);
  }

  async expectUnavailable(start: () => unknown, what: string): Promise<void> {
    expectKind(await promptly(this.refusal(start, what), what), 'unavailable', what);
  }

  /** Closes a key wrapper on behalf of a check; closing its instance again may then fail. */
  async closeKeyWrapper(keyWrapper: KeyWrapper): Promise<void> {
    this.closed.add(keyWrapper);
    const closing = this.answer(() => keyWrapper.close?.(), 'close');
    await promptly(closing, 'close');
  }
}

/** @throws {Finding} if `work` takes too long to count as immediate. */
export async function promptly<T>(work: Promise<T>, what: string): Promise<T> {
  const late = Symbol('late');
  const outcome = await within(PROMPT_MS, work, late);
  if (outcome === late) throw new Finding(`${what} has not ended after ${PROMPT_MS} ms`);
  return outcome;
}

/** A copy, so that a check does not change the original. */
export function copyOf({ wrapped, ...rest }: WrappedKey): WrappedKey {
  return { ...rest, wrapped: Uint8Array.from(wrapped) };
}

/** The same data key, with a wrapped key in which one byte is changed. */
export function altered({ dataKey, wrapped }: Made, at = 0): Made {
  return { dataKey, wrapped: { ...wrapped, wrapped: flipped(wrapped.wrapped, at) } };
}

export function wrappedKeyOf(value: unknown, what: string): WrappedKey {
  expectThat(typeof value === 'object' && value !== null, `${what} returned ${kindOf(value)}, not a wrapped key`);
  const { provider, keyId, wrapped, signature } = value as WrappedKey;
  expectThat(types.isUint8Array(wrapped), `${what} returned ${kindOf(wrapped)} as wrapped, not bytes`);
  if (Object.hasOwn(value, 'provider')) return value as WrappedKey;
  // A class may define the members as getters, which a spread does not copy.
  return { provider, keyId, wrapped, ...(signature !== undefined && { signature }) };
}

export function generatedOf(value: unknown, { supports }: KeyWrapper): Made {
  expectThat(typeof value === 'object' && value !== null, `generate returned ${kindOf(value)}`);
  const { dataKey, wrapped } = value as { readonly dataKey: unknown; readonly wrapped: unknown };
  const lengths = supports.context ? [32] : [32, 64];
  expectThat(
    types.isUint8Array(dataKey) && lengths.includes(dataKey.length),
    `generate returned ${kindOf(dataKey)} as a data key, not ${lengths.join(' or ')} bytes`,
  );
  return { dataKey, wrapped: wrappedKeyOf(wrapped, 'generate') };
}

export function bytesOf(value: unknown, what: string): Uint8Array {
  expectThat(types.isUint8Array(value), `${what} returned ${kindOf(value)}, not bytes`);
  return value;
}

function optionsOf(signal?: AbortSignal, onServiceDate?: WrapOptions['onServiceDate']): WrapOptions {
  return { ...OPTIONS, ...(signal && { signal }), ...(onServiceDate && { onServiceDate }) };
}
