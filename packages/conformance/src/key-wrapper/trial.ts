import { types } from 'node:util';
import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { sameBytes } from '../codec/trial.ts';
import { Random } from '../random.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import type { KeyWrapperControl, KeyWrapperInstance, KeyWrapperSubject } from './target.ts';

/** What every wrap is bound to, unless a check says otherwise. A service may hold a caller to this ring's name. */
export const CONTEXT: WrapOptions['context'] = Object.freeze({
  'sealring:ring': 'conformance',
  'sealring:purpose': 'data-key',
});

const KINDS: readonly unknown[] = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'];
const PROMPT_MS = 5_000;

/** How a call ended. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** What a check of a key wrapper works with: fresh instances, and the words for what it saw. */
export class KeyWrapperTrial {
  readonly subject: KeyWrapperSubject;
  readonly random: Random;
  readonly #open: KeyWrapperInstance[] = [];
  readonly #closed = new Set<KeyWrapper>();

  constructor(subject: KeyWrapperSubject, seed: number) {
    this.subject = subject;
    this.random = new Random(seed);
  }

  create(): Promise<KeyWrapper> {
    return this.#started('create', this.subject.create);
  }

  createOtherKey(): Promise<KeyWrapper> {
    return this.#started('createOtherKey', this.subject.createOtherKey);
  }

  createUnreachable(): Promise<KeyWrapper> {
    const { createUnreachable } = this.subject;
    if (createUnreachable === undefined) throw new NotApplicable('supports.remote is false');
    return this.#started('createUnreachable', createUnreachable);
  }

  /** One that shows whether a service was asked: where there is a service, it cannot be reached. */
  createUnasked(): Promise<KeyWrapper> {
    return this.subject.createUnreachable === undefined ? this.create() : this.createUnreachable();
  }

  /** @throws {NotApplicable} where the target cannot do that. */
  control<Name extends keyof KeyWrapperControl>(...names: readonly Name[]): Pick<Required<KeyWrapperControl>, Name> {
    const { control } = this.subject;
    const missing = names.find((name) => control[name] === undefined);
    if (missing !== undefined) throw new NotApplicable(`the target has no control.${missing}`);
    return control as Required<KeyWrapperControl>;
  }

  /** Bytes as the ring hands them over: a data key, and its hash of the context where the service binds none. */
  dataKey(keyWrapper: KeyWrapper): Uint8Array {
    return this.random.bytes(keyWrapper.supports.context ? 32 : 64);
  }

  /** Wraps a copy, and holds the answer against what every wrapped key is. @throws {Finding} when it is refused. */
  async wrap(
    keyWrapper: KeyWrapper,
    dataKey: Uint8Array,
    options: Partial<WrapOptions> = {},
    what = 'wrap',
  ): Promise<WrappedKey> {
    const given = Uint8Array.from(dataKey);
    return wrappedKeyOf(await this.answer(() => keyWrapper.wrap(given, { context: CONTEXT, ...options }), what), what);
  }

  /** A data key that the key wrapper makes, and its wrap. @throws {Finding} when it is refused, or is none. */
  async generate(
    keyWrapper: KeyWrapper,
    options: Partial<WrapOptions> = {},
  ): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }> {
    const answer = await this.answer(() => keyWrapper.generate?.({ context: CONTEXT, ...options }), 'generate');
    expectThat(typeof answer === 'object' && answer !== null, `generate gave ${kindOf(answer)}`);
    const { dataKey, wrapped } = answer as { readonly dataKey: unknown; readonly wrapped: unknown };
    const lengths = keyWrapper.supports.context ? [32] : [32, 64];
    expectThat(
      types.isUint8Array(dataKey) && lengths.includes(dataKey.length),
      `generate gave ${kindOf(dataKey)} as a data key, not ${lengths.join(' or ')} bytes`,
    );
    return { dataKey, wrapped: wrappedKeyOf(wrapped, 'generate') };
  }

  /** Opens what must open. @throws {Finding} when it does not. */
  async unwrap(
    keyWrapper: KeyWrapper,
    wrapped: WrappedKey,
    options: Partial<WrapOptions> = {},
    what = 'its own wrapped key',
  ): Promise<Uint8Array> {
    const answer = await this.answer(
      () => keyWrapper.unwrap(copyOf(wrapped), { context: CONTEXT, ...options }),
      `unwrap of ${what}`,
    );
    expectThat(types.isUint8Array(answer), `unwrap of ${what} gave ${kindOf(answer)}, not bytes`);
    return answer;
  }

  /** @throws {Finding} unless `wrapped` opens to `dataKey`. */
  async expectOpens(
    keyWrapper: KeyWrapper,
    wrapped: WrappedKey,
    dataKey: Uint8Array,
    what?: string,
    options?: Partial<WrapOptions>,
  ): Promise<void> {
    const back = await this.unwrap(keyWrapper, wrapped, options, what);
    expectThat(sameBytes(back, dataKey), `${what ?? 'its own wrapped key'} opens to ${back.length} other bytes`);
  }

  /** @throws {Finding} unless `wrapped` is refused as corrupt. */
  async expectCorrupt(
    keyWrapper: KeyWrapper,
    wrapped: WrappedKey,
    what: string,
    options: Partial<WrapOptions> = {},
  ): Promise<void> {
    const error = await this.refusal(() => keyWrapper.unwrap(copyOf(wrapped), { context: CONTEXT, ...options }), what);
    expectKind(error, 'corrupt', what);
  }

  /** What a call that must succeed gave. @throws {Finding} when it fails. */
  async answer(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await settle(start);
    if ('error' in outcome) throw new Finding(`${what} failed: ${describeError(outcome.error)}`);
    return outcome.value;
  }

  /** What refuses a call that must fail. @throws {Finding} when it succeeds. */
  async refusal(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await settle(start);
    if ('error' in outcome) return outcome.error;
    throw new Finding(`${what} was not refused: the call gave ${kindOf(outcome.value)}`);
  }

  /** What closes a key wrapper that a check closes itself: its instance may then fail to close once more. */
  async closeKeyWrapper(keyWrapper: KeyWrapper): Promise<void> {
    this.#closed.add(keyWrapper);
    await promptly(
      this.answer(() => keyWrapper.close?.(), 'close'),
      'close',
    );
  }

  async close(): Promise<void> {
    for (const { keyWrapper, ...instance } of this.#takeOpen()) {
      const closing = settle(() => instance.close());
      const outcome = await closing;
      if ('error' in outcome && !this.#closed.has(keyWrapper)) {
        throw new Finding(`close of an instance failed: ${describeError(outcome.error)}`);
      }
    }
  }

  #takeOpen(): readonly { readonly keyWrapper: KeyWrapper; readonly close: () => unknown }[] {
    return this.#open.splice(0).map((instance) => ({
      keyWrapper: instance.keyWrapper,
      close: () => instance.close?.(),
    }));
  }

  async #started(name: string, create: () => Promise<KeyWrapperInstance> | KeyWrapperInstance): Promise<KeyWrapper> {
    const instance: unknown = await create();
    expectThat(
      typeof instance === 'object' && instance !== null && 'keyWrapper' in instance,
      `${name} returned no { keyWrapper }`,
    );
    this.#open.push(instance as KeyWrapperInstance);
    const { keyWrapper } = instance as KeyWrapperInstance;
    expectThat(
      typeof keyWrapper?.wrap === 'function' && typeof keyWrapper.unwrap === 'function',
      `${name}: no wrap and unwrap`,
    );
    expectThat(typeof keyWrapper.supports === 'object' && keyWrapper.supports !== null, `${name}: no supports`);
    return keyWrapper;
  }
}

/** How a call ends, whether it throws or rejects. */
export async function settle(start: () => unknown): Promise<Outcome> {
  try {
    return { value: await start() };
  } catch (error) {
    return { error };
  }
}

/** @throws {Finding} when it takes longer than anybody would call at once. */
export async function promptly<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Finding(`${what} has not ended after ${PROMPT_MS} ms`)), PROMPT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether it is a `KeyWrapperError`, by name: an adapter may carry its own copy of the class. */
export function isKeyWrapperError(
  error: unknown,
): error is Error & { readonly kind: unknown; readonly summary: unknown } {
  return (
    types.isNativeError(error) && error.name === 'KeyWrapperError' && 'kind' in error && KINDS.includes(error.kind)
  );
}

export function isArgumentError(error: unknown): boolean {
  return types.isNativeError(error) && (error.name === 'TypeError' || error.name === 'RangeError');
}

/** @throws {Finding} unless it is a `KeyWrapperError` of this kind. */
export function expectKind(error: unknown, kind: string, what: string): void {
  const isKind = isKeyWrapperError(error) && error.kind === kind;
  expectThat(isKind, `${what.replace(/,$/, '')}: expected ${kind}, got ${describeError(error)}`);
}

/** @throws {Finding} unless it is a `TypeError` or a `RangeError`. */
export function expectArgumentError(error: unknown, what: string): void {
  expectThat(isArgumentError(error), `${what}: expected a TypeError or RangeError, got ${describeError(error)}`);
}

/** An error by name and kind; its text may hold a secret. */
export function describeError(error: unknown): string {
  if (isKeyWrapperError(error)) return `a KeyWrapperError, ${String(error.kind)}`;
  if (error instanceof Finding) return error.message;
  return types.isNativeError(error) ? `an error named ${error.name}` : kindOf(error);
}

/** A value by its type only: it may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Another object with the same bytes: what a check holds stays as it is. */
export function copyOf({ wrapped, ...rest }: WrappedKey): WrappedKey {
  return { ...rest, wrapped: Uint8Array.from(wrapped) };
}

/** @throws {Finding} unless it has the members of a wrapped key. */
export function wrappedKeyOf(value: unknown, what: string): WrappedKey {
  expectThat(typeof value === 'object' && value !== null, `${what} gave ${kindOf(value)}, not a wrapped key`);
  const { wrapped } = value as WrappedKey;
  expectThat(types.isUint8Array(wrapped), `${what} gave ${kindOf(wrapped)} as wrapped, not bytes`);
  return value as WrappedKey;
}
