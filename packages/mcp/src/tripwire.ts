import { internalError } from './refusal.ts';

/** Tokens on their way to the transport, per server: more than can be at once. Characters bound the memory. */
const MAX_TOKENS = 16_384;
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** The part of a transport that is watched. */
interface SendingTransport {
  send(message: unknown, options?: unknown): Promise<void>;
}

/**
 * The last check before the wire: an `input_required` result leaves only with a `requestState` that this boundary
 * sealed. It catches what no wrapped handler saw: a handler put in past the interposed methods, or a result that another
 * middleware changed afterwards.
 */
export class Tripwire {
  // Made when needed: a server that lives for one request seals at most one token, and watches one transport.
  #minted: Set<string> | undefined;
  #characters = 0;
  #watched: object | undefined;
  #watchedBefore: WeakSet<object> | undefined;
  readonly #tripped: () => void;

  constructor(tripped: () => void) {
    this.#tripped = tripped;
  }

  /** Remembers a token that was just sealed, until it leaves. The oldest is forgotten: its result would not leave any more. */
  expect(token: string): void {
    const minted = (this.#minted ??= new Set());
    minted.add(token);
    this.#characters += token.length;
    for (const oldest of minted) {
      if (minted.size <= MAX_TOKENS && this.#characters <= MAX_CHARACTERS) return;
      this.#forget(oldest);
    }
  }

  /** Patches `send` in place: the SDK recognises its own transports by class, so a wrapper would not do. */
  watch(transport: unknown): void {
    if (!isSendingTransport(transport) || transport === this.#watched) return;
    if (this.#watchedBefore?.has(transport) === true) return;
    const send = transport.send.bind(transport);
    transport.send = (message, options) => send(this.#passes(message) ? message : refusalOf(message), options);
    if (this.#watched !== undefined) (this.#watchedBefore ??= new WeakSet()).add(this.#watched);
    this.#watched = transport;
  }

  #passes(message: unknown): boolean {
    const result = member(message, 'result');
    if (member(result, 'resultType') !== 'input_required') return true;
    const state = member(result, 'requestState');
    if (state === undefined) return true;
    if (typeof state === 'string' && this.#forget(state)) return true;
    this.#tripped();
    return false;
  }

  /** Whether it was there. */
  #forget(token: string): boolean {
    if (this.#minted?.delete(token) !== true) return false;
    this.#characters -= token.length;
    return true;
  }
}

function isSendingTransport(value: unknown): value is SendingTransport {
  return typeof member(value, 'send') === 'function';
}

function refusalOf(message: unknown): unknown {
  const { code, message: text } = internalError();
  return { jsonrpc: '2.0', id: member(message, 'id'), error: { code, message: text } };
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
