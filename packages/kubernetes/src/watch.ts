import type { IncomingMessage } from 'node:http';
import type { PushListener } from '@sealring/core/adapter';
import type { ClientSource } from './client.ts';
import { type Place, watchPath } from './objects.ts';
import { field, MAX_BODY_BYTES, parse, send } from './requests.ts';

/** The API server ends a watch after this time; most clients ask for 5 to 10 minutes. */
const WATCH_SECONDS = 300;
/**
 * How long a watch may last. A watch may be silent for its whole life, so only its age shows that a load balancer keeps
 * the connection to an API server that is gone. In milliseconds.
 */
const LONGEST_WATCH_MS = (WATCH_SECONDS + 30) * 1_000;
/** Delay of TCP keep-alive, in milliseconds. Within the life of a watch, only keep-alive reveals a lost peer. */
const KEEP_ALIVE_MS = 15_000;
/** A watch that ends sooner than this is not resumed at once. In milliseconds. */
const SHORTEST_WATCH_MS = 1_000;

/**
 * Listens for changes to one object. A watch that the API server ends normally is resumed at the version that it had
 * reached. Anything else, including an error event, ends the listener: a watch cannot be resumed at a version that is
 * too old (410).
 *
 * @param timeoutMs - The longest wait for the API server to answer, in milliseconds.
 */
export function watchListener(source: ClientSource, place: Place, timeoutMs: number): PushListener {
  const over = new AbortController();
  let resourceVersion = '';
  let deadlineMs = 0;

  const open = async (): Promise<IncomingMessage> => {
    deadlineMs = performance.now() + timeoutMs;
    const asked = { method: 'GET', path: watchPath(place, resourceVersion, WATCH_SECONDS) } as const;
    const client = await source();
    if ('failure' in client) throw new Error(client.failure.detail);
    // Unlike a call, a watch does not keep the process alive, not even while it connects.
    const response = await send(client.answer, asked, over.signal, (socket) => void socket.unref());
    // The caller ends the request.
    if (response.statusCode !== 200) throw new Error('the watch was refused');
    response.socket.setKeepAlive(true, KEEP_ALIVE_MS);
    deadlineMs = performance.now() + LONGEST_WATCH_MS;
    return response;
  };

  const follow = async (first: IncomingMessage, changed: () => void): Promise<void> => {
    for (let response = first; ; response = await open()) {
      const openedAt = performance.now();
      for await (const line of linesOf(response)) {
        const event = parse(line);
        const type = field(event, 'type');
        const version = field(field(field(event, 'object'), 'metadata'), 'resourceVersion');
        // An error event has no version, because it is not about an object.
        if (typeof version !== 'string') throw new Error('the watch cannot continue');
        resourceVersion = version;
        if (type !== 'BOOKMARK') changed();
      }
      if (performance.now() - openedAt < SHORTEST_WATCH_MS) throw new Error('the watch ended at once');
    }
  };

  return {
    async start(changed, lost) {
      const first = await open();
      // `follow` always ends by throwing; `lost` is called with the error, even after a requested end.
      follow(first, changed).catch(lost);
    },
    async check() {
      if (performance.now() > deadlineMs) throw new Error('the watch got no answer, or did not end in time');
    },
    end: () => over.abort(),
  };
}

/** @throws {Error} for a line that is longer than any object, and the error that ends the stream. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    const lines = (rest + String(chunk)).split('\n');
    rest = String(lines.pop());
    if (rest.length > MAX_BODY_BYTES) throw new Error('an event is longer than any Kubernetes event');
    yield* lines.filter((line) => line !== '');
  }
}
