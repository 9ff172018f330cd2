import { randomBytes } from 'node:crypto';
import { internalError, invalidRequestStateError, type WireError } from '../boundary/refusal.ts';

// As that of a protected server, on the object itself.
const WATCHER = Symbol('sealring.watcher');

/** The part of a transport that is watched. */
interface WatchedTransport {
  [WATCHER]?: Watcher;
  send(message: unknown, options?: unknown): Promise<void>;
  start(): Promise<void>;
  onmessage?: ((message: unknown, extra?: unknown) => void) | undefined;
}

/** Who judges what a transport brings and takes. */
export interface Watcher {
  /** Whether a message may be delivered; tells of one that may not. */
  mayEnter(message: unknown): boolean;
  /** Tells of a state that did not leave. */
  tripped(): void;
}

/** In front of every token between guard and transport, in this process: no handler's text passes for a token. */
let mark: string | undefined;

/** Marks a token that was just sealed; the mark goes as it leaves. */
export function markSealed(token: string): string {
  mark ??= `${randomBytes(16).toString('base64url')}:`;
  return mark + token;
}

/**
 * The last check before the wire, in both directions. An `input_required` result leaves only with a `requestState` that
 * was just sealed; it catches what no wrapped handler saw: a handler put in past the interposed methods, or a result that
 * another middleware changed afterwards. A request whose `requestState` no guard would open is not delivered.
 *
 * Patches in place: the SDK recognises its own transports by class, so a wrapper would not do.
 */
export function watch(transport: unknown, watcher: Watcher): void {
  if (!isTransport(transport)) return;
  const isWatched = transport[WATCHER] !== undefined;
  transport[WATCHER] = watcher;
  if (isWatched) return;
  const send = transport.send.bind(transport);
  const start = transport.start.bind(transport);
  transport.send = (message, options) => send(outgoing(transport, message), options);
  // The SDK sets `onmessage` right before it starts a transport, which may deliver at once.
  transport.start = () => {
    const deliver = transport.onmessage;
    const onmessage = (message: unknown, extra?: unknown): void => {
      if (transport[WATCHER]?.mayEnter(message) !== false) deliver?.call(transport, message, extra);
      else send(answer(message, invalidRequestStateError())).catch(() => undefined);
    };
    Object.assign(transport, { onmessage });
    return start();
  };
}

/** The `requestState` of a request, whatever it is; undefined for none, and for what is no request. */
export function carriedBy(message: unknown): unknown {
  const id = member(message, 'id');
  // On other messages the SDK leaves it where it is: no handler is given it.
  return id === undefined || id === null ? undefined : (member(member(message, 'params'), 'requestState') ?? undefined);
}

function outgoing(transport: WatchedTransport, message: unknown): unknown {
  const result = member(message, 'result');
  if (member(result, 'resultType') !== 'input_required') return message;
  const state = member(result, 'requestState');
  if (state === undefined) return message;
  if (typeof state === 'string' && mark !== undefined && state.startsWith(mark)) {
    return { ...Object(message), result: { ...Object(result), requestState: state.slice(mark.length) } };
  }
  transport[WATCHER]?.tripped();
  return answer(message, internalError());
}

function answer(message: unknown, { code, message: text, data }: WireError): unknown {
  const error = { code, message: text, ...(data === undefined ? {} : { data }) };
  return { jsonrpc: '2.0', id: member(message, 'id'), error };
}

function isTransport(value: unknown): value is WatchedTransport {
  return typeof member(value, 'send') === 'function' && typeof member(value, 'start') === 'function';
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
