import { randomBytes } from 'node:crypto';
import { errorAnswer, internalError, invalidRequestStateError } from '../boundary/refusal.ts';
import { hasMethods } from '../shared/option-checks.ts';

// The watcher is a property of the transport, like the mark of a protected server.
const WATCHER = Symbol('sealring.watcher');

/** The members of a transport that are wrapped. */
interface WatchedTransport {
  [WATCHER]: Watcher;
  send(message: unknown, options?: unknown): Promise<void>;
  start(): Promise<void>;
  onmessage?: ((message: unknown, extra?: unknown) => void) | undefined;
}

/** Decides which messages of a transport may pass, and reports the others. */
export interface Watcher {
  /** Whether an incoming message may be delivered. Reports a message that may not be delivered. */
  mayEnter(message: unknown): boolean;
  /** Reports a state that was not sent. */
  tripped(): void;
}

/**
 * Prefix of every token between guard and transport. It is random per process, so that a handler's text is never
 * mistaken for a token.
 */
let mark: string | undefined;

/** Marks a token that was just sealed. The transport removes the mark. */
export function markSealed(token: string): string {
  mark ??= `${randomBytes(16).toString('base64url')}:`;
  return mark + token;
}

/**
 * The last check at the transport, in both directions. An `input_required` result is sent only if its `requestState` was
 * just sealed: this catches a handler that was registered without going through the wrapped methods, and a result that
 * other middleware changed. A request whose `requestState` would reach an unguarded handler is not delivered.
 *
 * The transport is changed in place, because the SDK recognizes its own transports by class.
 */
export function watch(transport: unknown, watcher: Watcher): void {
  if (!isTransport(transport)) return;
  const isWatched = Reflect.has(transport, WATCHER);
  transport[WATCHER] = watcher;
  if (isWatched) return;
  const send = transport.send.bind(transport);
  const start = transport.start.bind(transport);
  transport.send = (message, options) => send(outgoing(transport, message), options);
  // The SDK sets `onmessage` right before it starts a transport, which may deliver messages immediately.
  transport.start = () => {
    const deliver = transport.onmessage;
    const onmessage = (message: unknown, extra?: unknown): void => {
      if (transport[WATCHER].mayEnter(message)) deliver?.call(transport, message, extra);
      else send(errorAnswer(member(message, 'id'), invalidRequestStateError())).catch(() => undefined);
    };
    Object.assign(transport, { onmessage });
    return start();
  };
}

/** Whether a message is a request with a `requestState`. The SDK passes a state to a handler only for requests. */
export function carriesState(message: unknown): boolean {
  return [member(message, 'id'), member(member(message, 'params'), 'requestState')].every(
    (one) => (one ?? null) !== null,
  );
}

function outgoing(transport: WatchedTransport, message: unknown): unknown {
  const result = member(message, 'result');
  if (member(result, 'resultType') !== 'input_required') return message;
  const state = member(result, 'requestState');
  if (state === undefined) return message;
  const marked = markSealed('');
  if (typeof state === 'string' && state.startsWith(marked)) {
    return { ...Object(message), result: { ...Object(result), requestState: state.slice(marked.length) } };
  }
  transport[WATCHER].tripped();
  return errorAnswer(member(message, 'id'), internalError());
}

function isTransport(value: unknown): value is WatchedTransport {
  return hasMethods(value, ['send', 'start']);
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
