import { createHash } from 'node:crypto';
import { internalError } from './refusal.ts';

/** Hashes remembered per server: far more results than can be on their way to the transport at once. */
const MINTED_BOUND = 16_384;

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
  // Hashes, not tokens: bounded in bytes too.
  readonly #minted = new Set<string>();
  readonly #watched = new WeakSet<object>();
  readonly #tripped: () => void;

  constructor(tripped: () => void) {
    this.#tripped = tripped;
  }

  /** Remembers a token that was just sealed. The oldest is forgotten: its result would not leave any more. */
  expect(token: string): void {
    this.#minted.add(hashOf(token));
    if (this.#minted.size <= MINTED_BOUND) return;
    for (const oldest of this.#minted) {
      this.#minted.delete(oldest);
      return;
    }
  }

  /** Patches `send` in place: the SDK recognises its own transports by class, so a wrapper would not do. */
  watch(transport: unknown): void {
    if (!isSendingTransport(transport) || this.#watched.has(transport)) return;
    const send = transport.send.bind(transport);
    transport.send = (message, options) => send(this.#passes(message) ? message : refusalOf(message), options);
    this.#watched.add(transport);
  }

  #passes(message: unknown): boolean {
    const result = member(message, 'result');
    if (member(result, 'resultType') !== 'input_required') return true;
    const state = member(result, 'requestState');
    if (state === undefined) return true;
    if (typeof state === 'string' && this.#minted.has(hashOf(state))) return true;
    this.#tripped();
    return false;
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

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
