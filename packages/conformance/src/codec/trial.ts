import { inspect, types } from 'node:util';
import type { RequestStateCodec } from '@sealring/core';
import { sameBytes } from '../bytes.ts';
import { type Checks, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import { Trial } from '../trial.ts';
import { type CodecSupport, type CodecTarget, LONGEST_PAYLOAD } from './target.ts';
import { replaced } from './token-parts.ts';

export type CodecChecks = Checks<CodecTrial>;

/** Bytes that a token and each of its parts may encode, in the common encodings. */
export function decodings(token: string): readonly Uint8Array[] {
  return decodingsOf(token).map((decode) => decode());
}

/** The same decodings as functions: each decodes when it is called. */
export function decodingsOf(token: string): readonly (() => Uint8Array)[] {
  const parts = [token, ...token.split(/[.~]/), token.replace(/^[^.]*\./, '')];
  return parts.flatMap((part) =>
    (['base64url', 'hex', 'latin1'] as const).map((encoding) => () => Buffer.from(part, encoding)),
  );
}

/** Time budget for the optional calls of one check, in milliseconds, so that a slow codec takes less than a minute. */
export const BUDGET_MS = 1_500;

/** The tools of a codec check: new instances, calls and findings. */
export class CodecTrial extends Trial {
  readonly supports: Required<CodecSupport>;
  /** The URL of the module of the target, if known. */
  readonly module: string | undefined;
  readonly #target: CodecTarget;

  constructor(target: CodecTarget, seed: number, module?: string | URL) {
    super(seed);
    this.#target = target;
    const {
      confidentiality = true,
      maxPayloadBytes = Number.MAX_SAFE_INTEGER,
      crossInstance = true,
    } = target.supports ?? {};
    this.supports = { confidentiality, maxPayloadBytes, crossInstance };
    this.module = module === undefined ? undefined : String(module);
  }

  create(): Promise<RequestStateCodec> {
    return this.#create('create');
  }

  createPeer(): Promise<RequestStateCodec> {
    if (!this.supports.crossInstance) throw new NotApplicable('supports.crossInstance is false');
    return this.#create('createPeer');
  }

  /** A peer with the same keys or, without support for peers, another instance. */
  createPeerOrSelf(): Promise<RequestStateCodec> {
    return this.supports.crossInstance ? this.createPeer() : this.create();
  }

  createStranger(): Promise<RequestStateCodec> {
    return this.#create('createStranger');
  }

  createRotated(): Promise<RequestStateCodec> {
    if (this.#target.createRotated === undefined) throw new NotApplicable('the target has no createRotated');
    return this.#create('createRotated');
  }

  /** A codec before a rotation, and one after it if the target has one. */
  async createWithRotated(): Promise<readonly [RequestStateCodec, ...RequestStateCodec[]]> {
    const codec = await this.create();
    return this.#target.createRotated === undefined ? [codec] : [codec, await this.createRotated()];
  }

  #create(name: 'create' | 'createPeer' | 'createStranger' | 'createRotated'): Promise<RequestStateCodec> {
    return this.start<RequestStateCodec>(name, () => this.#target[name]?.(), 'codec', ['seal', 'unseal']);
  }

  /** Seals, and checks that the result is a string, returned synchronously. */
  seal(codec: RequestStateCodec, payload: Uint8Array): string {
    const token: unknown = attempt(() => codec.seal(payload), `seal of ${bytesText(payload)}`);
    if (isThenable(token)) {
      token.then(undefined, () => undefined);
      throw new Finding('seal returned a promise');
    }
    expectThat(typeof token === 'string', `seal returned ${kindOf(token)}, not a string`);
    return token;
  }

  /** Unseals a token that must be valid. @throws {Finding} if it is refused. */
  unseal(codec: RequestStateCodec, token: string, what = 'its own token'): Uint8Array {
    const payload: unknown = attempt(() => codec.unseal(token), `unseal of ${what}`);
    if (isThenable(payload)) {
      payload.then(undefined, () => undefined);
      throw new Finding('unseal returned a promise');
    }
    expectThat(types.isUint8Array(payload), `unseal returned ${kindOf(payload)}, not bytes`);
    return payload;
  }

  expectPayload(codec: RequestStateCodec, token: string, payload: Uint8Array, what?: string): void {
    const back = this.unseal(codec, token, what);
    expectThat(
      sameBytes(back, payload),
      `${what ?? `the token of ${bytesText(payload)}`} unseals to ${bytesText(back)}`,
    );
  }

  /** The error for an invalid token. @throws {Finding} if unseal returns a value. */
  refused(codec: RequestStateCodec, token: unknown, what: string): unknown {
    const outcome = this.outcome(codec, token);
    if ('refusal' in outcome) return outcome.refusal;
    throw new Finding(`${what} was not refused: unseal returned ${kindOf(outcome.answer)}`);
  }

  /** The result of unsealing a token. Another requirement decides whether the token must be refused. */
  outcome(codec: RequestStateCodec, token: unknown): { readonly refusal: unknown } | { readonly answer: unknown } {
    let answer: unknown;
    try {
      answer = (codec as { unseal(token: unknown): unknown }).unseal(token);
    } catch (refusal) {
      // A failure outside the codec is not a refusal.
      if (refusal instanceof Finding) throw refusal;
      return { refusal };
    }
    if (types.isPromise(answer)) answer.catch(() => undefined);
    return { answer };
  }

  /**
   * Checks the class of a refusal by its name, since a codec may have its own copy of the class.
   * @throws {Finding} for another class.
   */
  expectRefusalClass(error: unknown, what: string): void {
    const name = types.isNativeError(error) ? error.name : kindOf(error);
    expectThat(
      types.isNativeError(error) && name === (this.#target.refusal ?? 'InvalidRequestState'),
      `${what} was refused by ${name}`,
    );
  }

  /**
   * Returns as many evenly spread calls as fit into {@link BUDGET_MS}: all of them, unless the codec is slow.
   *
   * @param call - One such call, whose time is measured.
   */
  sample<T>(calls: readonly T[], call: () => unknown): readonly T[] {
    if (calls.length === 0) return [];
    const until = performance.now() + 100;
    const times: number[] = [];
    while (times.length < 50 && performance.now() < until) {
      const began = performance.now();
      call();
      times.push(performance.now() - began);
    }
    // The median ignores calls that a busy machine interrupted.
    const usual = times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
    return this.spread(calls, BUDGET_MS / usual);
  }

  /** At most `most` of the items, evenly spread. */
  spread<T>(items: readonly T[], most: number): readonly T[] {
    const step = Math.ceil(items.length / most);
    const from = this.random.below(Math.max(1, step));
    return step <= 1 ? items : items.filter((_, i) => i % step === from);
  }

  text(content: string): Uint8Array {
    return new TextEncoder().encode(content).slice(0, this.supports.maxPayloadBytes);
  }

  bytes(length: number): Uint8Array {
    return this.random.bytes(Math.min(length, this.supports.maxPayloadBytes));
  }

  fits(payload: Uint8Array): boolean {
    return payload.length <= this.supports.maxPayloadBytes;
  }
}

function attempt<T>(run: () => T, what: string): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof Finding) throw error;
    throw new Finding(`${what} threw ${describeThrown(error)}`);
  }
}

export function bytesText(bytes: Uint8Array): string {
  const shown = Buffer.from(bytes.subarray(0, 16)).toString('hex');
  if (bytes.length === 0) return 'no bytes';
  return `${bytes.length} byte${bytes.length === 1 ? '' : 's'} ${shown}${bytes.length > 16 ? '…' : ''}`;
}

export function tokenText(token: string): string {
  return inspect(token.length > 80 ? `${token.slice(0, 60)}…${token.slice(-12)}` : token);
}

/** Uses a codec once in every way. Other requirements check the results. */
export function useOnce(codec: RequestStateCodec): void {
  const token = answerOf(() => codec.seal(new TextEncoder().encode('state')));
  answerOf(() => codec.unseal(token as string));
  answerOf(() => codec.unseal(`${String(token)}A`));
}

/** What {@link useWhole} uses: a codec, a token of another service, and the codec of a later rotation, if there is one. */
export interface Used {
  readonly codec: RequestStateCodec;
  readonly strange: string;
  readonly rotated: RequestStateCodec | undefined;
}

export async function usedBy(trial: CodecTrial): Promise<Used> {
  const [codec, rotated] = await trial.createWithRotated();
  const stranger = await trial.createStranger();
  return { codec, strange: String(answerOf(() => stranger.seal(new TextEncoder().encode('state')))), rotated };
}

/** Also uses long payloads, tokens of another service and of an earlier key, and changed tokens. */
export function useWhole({ codec, strange, rotated }: Used): void {
  useOnce(codec);
  const short = String(answerOf(() => codec.seal(new TextEncoder().encode('state'))));
  for (const at of [0, 8, short.length >> 1, short.length - 4]) {
    answerOf(() => codec.unseal(replaced(short, at, short[at] === 'A' ? 'B' : 'A')));
  }
  answerOf(() => codec.unseal(strange));
  answerOf(() => rotated?.unseal(short));
  for (const length of [1_000, LONGEST_PAYLOAD]) {
    const token = answerOf(() => codec.seal(new Uint8Array(length)));
    answerOf(() => codec.unseal(token as string));
  }
}

export function answerOf(call: () => unknown): unknown {
  try {
    const answer = call();
    if (types.isPromise(answer)) answer.catch(() => undefined);
    return answer;
  } catch {
    return undefined;
  }
}
