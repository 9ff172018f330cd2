import { parseExactly, printExactly } from './exact-json.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { hasDuplicates } from './json-structure.ts';
import { mayHaveState } from './lenient-reading.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** How the events of a stream are handled. */
interface Rewriting {
  /** Returns the message that replaces `message`, or `message` itself. */
  readonly rewrite: (message: unknown) => Promise<unknown>;
  /** Whether the stream answers a call. Then no event that is not JSON may contain a state, not even as text. */
  readonly isAnswer: boolean;
  /** Returns the message that replaces an event which may hold a state and is not JSON. */
  readonly unreadable: () => unknown;
  readonly maxEventBytes: number;
  /** Called for an event of more than `maxEventBytes`, before the stream fails. */
  readonly tooLarge: () => void;
}

/**
 * Rewrites the JSON messages of a stream of server-sent events. Every other event passes through byte for byte,
 * unless it may hold a state. Every event is sent as soon as it is complete.
 */
export function rewriteEvents(rewriting: Rewriting): TransformStream<Uint8Array, Uint8Array> {
  const { maxEventBytes, tooLarge } = rewriting;
  const splitter = new EventSplitter();
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      for (const event of splitter.push(chunk)) controller.enqueue(await rewriteEvent(event, rewriting));
      if (splitter.pending > maxEventBytes) {
        tooLarge();
        controller.error(new RangeError(`a server-sent event has more than ${maxEventBytes} bytes`));
      }
    },
    async flush(controller) {
      const event = splitter.rest();
      // Most clients ignore an incomplete event, but some do not.
      if (event.byteLength > 0) controller.enqueue(await rewriteEvent(event, rewriting));
    },
  });
}

/** Divides a stream into events, each with the blank line that ends it. */
class EventSplitter {
  #gathered = new GatheredBytes();
  #isLineEmpty = true;
  #isAfterReturn = false;

  get pending(): number {
    return this.#gathered.size;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    const events: Uint8Array[] = [];
    let start = 0;
    for (let at = 0; at < chunk.byteLength; at += 1) {
      if (!this.#endsEvent(chunk[at])) continue;
      this.#gathered.add(chunk.subarray(start, at + 1));
      events.push(this.rest());
      start = at + 1;
    }
    this.#gathered.add(chunk.subarray(start));
    return events;
  }

  rest(): Uint8Array {
    const { bytes } = this.#gathered;
    this.#gathered = new GatheredBytes();
    return bytes;
  }

  #endsEvent(byte: number | undefined): boolean {
    const isPair = byte === LINE_FEED && this.#isAfterReturn;
    this.#isAfterReturn = byte === CARRIAGE_RETURN;
    if (isPair) return false;
    if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) {
      this.#isLineEmpty = false;
      return false;
    }
    const ends = this.#isLineEmpty;
    this.#isLineEmpty = true;
    return ends;
  }
}

async function rewriteEvent(event: Uint8Array, { rewrite, isAnswer, unreadable }: Rewriting): Promise<Uint8Array> {
  const text = new TextDecoder().decode(event);
  const lines = text.split(/\r\n|\n|\r/);
  const others = lines.filter((line) => line !== '' && dataOf(line) === undefined);
  const data = lines.flatMap((line) => dataOf(line) ?? []).join('\n');
  const replaced = (): Uint8Array => Buffer.from(`data: ${printExactly(unreadable())}\n\n`);
  const mayLeak = (parts: readonly string[]): boolean =>
    mayHaveState(parts.join('\n')) && (isAnswer || parts.some(mayBeJson));
  if (mayLeak(others)) return replaced();
  let message: unknown;
  try {
    message = parseExactly(data);
  } catch {
    return mayLeak([data]) ? replaced() : event;
  }
  const rewritten = await rewrite(message);
  if (rewritten === message && !(mayHaveState(text) && hasDuplicates(data, message))) return event;
  try {
    // If two members have the same name, the client gets the one that was checked. Some clients, such as older ones in
    // Python, treat these characters, which occur in JSON only within strings, as the end of a line.
    const json = printExactly(rewritten).replaceAll(
      /[\u0085\u2028\u2029]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    return Buffer.from([...others, `data: ${json}`, '', ''].join('\n'));
  } catch {
    // The JSON is nested too deeply.
    return replaced();
  }
}

/** Whether a text begins like the JSON of an object or array, or like a comment, also after the name of a field. */
function mayBeJson(text: string): boolean {
  return /^(?:[a-z]*:)?[\s\p{Control}\uFEFF\uFFFD]*[{[/#]/u.test(text);
}

function dataOf(line: string): string | undefined {
  if (line === 'data') return '';
  return line.startsWith('data:') ? line.slice(5) : undefined;
}
