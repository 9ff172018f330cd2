import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { rewriteEvents } from '../../src/fetch/event-stream.ts';

/** The output for these chunks, as text; every message with a member `secret` is replaced. */
async function rewritten(sent: readonly Uint8Array[], settings: Settings = {}): Promise<string> {
  return (await piecesOf(sent, settings)).join('');
}

interface Settings {
  readonly maxEventBytes?: number;
  readonly isAnswer?: boolean;
}

async function piecesOf(
  chunks: readonly Uint8Array[],
  { maxEventBytes = 1_000_000, isAnswer = true }: Settings = {},
): Promise<string[]> {
  const hide = async (message: unknown): Promise<unknown> =>
    Object.hasOwn(Object(message), 'secret') ? { hidden: true } : message;
  const rewriting = {
    rewrite: hide,
    isAnswer,
    unreadable: () => ({ hidden: true }),
    maxEventBytes,
    tooLarge: () => {},
  };
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const pieces: string[] = [];
  for await (const piece of source.pipeThrough(rewriteEvents(rewriting))) pieces.push(Buffer.from(piece).toString());
  return pieces;
}

const line = fc.constantFrom(
  'data: {"a":"ü"}',
  'data: {"a":',
  'data:1}',
  'data',
  'id: 7',
  ': note',
  'event: message',
  '',
);
const end = fc.constantFrom('\n', '\r', '\r\n');
const text = fc.array(fc.tuple(line, end).map((parts) => parts.join(''))).map((lines) => lines.join(''));

/** The bytes of a text, cut at these places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((stop, index) => bytes.subarray(at[index], stop));
}

test('events that need no rewriting are forwarded byte for byte, wherever the stream is cut', async () => {
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat()), async (sent, places) => {
      expect(await rewritten(cut(Buffer.from(sent), places))).toBe(sent);
    }),
  );
});

test('a message is rewritten with any kind of line ending, wherever the stream is cut', async () => {
  await fc.assert(
    fc.asyncProperty(text, end, fc.array(fc.nat()), async (before, eol, places) => {
      const sent = `${before}${eol}${eol}id: 9${eol}data: {"secret":${eol}data: 1}${eol}${eol}data: 2${eol}${eol}`;
      const left = await rewritten(cut(Buffer.from(sent), places));
      expect(left).toContain('id: 9\ndata: {"hidden":true}\n\n');
      expect(left).not.toContain('secret');
    }),
  );
});

test.each([
  ['\ndata: 1\n\ndata: 2\n\n', ['\n', 'data: 1\n\n', 'data: 2\n\n']],
  ['\rdata: 1\r\rdata: 2', ['\r', 'data: 1\r\r', 'data: 2']],
  ['\r\ndata: 1\r\n\r\n', ['\r', '\ndata: 1\r\n\r', '\n']],
])(
  'every event of %j is forwarded separately, including an empty one at the beginning, and nothing else is forwarded',
  async (sent, pieces) => {
    expect(await piecesOf([Buffer.from(sent)])).toEqual(pieces);
  },
);

test.each([
  ['a line of data without a colon', 'data\ndata: {"secret":1}\n\n', 'data: {"hidden":true}\n\n'],
  ['data without a space', 'data:{"secret":1}\n\n', 'data: {"hidden":true}\n\n'],
  ['a comment with a state', ': "requestState"\ndata: {"secret":1}\n\n', 'data: {"hidden":true}\n\n'],
  ['a number on two lines', 'data:{"secret":1\ndata:2}\n\n', 'data:{"secret":1\ndata:2}\n\n'],
])('an event with %s is read as clients read it', async (_name, sent, left) => {
  expect(await rewritten([Buffer.from(sent)])).toBe(left);
});

test('a message is rewritten even if no blank line follows it', async () => {
  expect(await rewritten([Buffer.from('data: {"secret":1}')])).toBe('data: {"hidden":true}\n\n');
});

test.each([
  ['data that is cut off', 'data: {"requestState":"sec'],
  ['a number that is not JSON', 'data: {"requestState":"secret","amount":NaN}\n\n'],
  ['an escaped name', 'data: {"\\u0072equest\\u0053tate":"secret"\n\n'],
  ['a comment', ': {"requestState":"secret"}\n\n'],
  ['a comment on two lines', ': {\n: "requestState":"secret"}\n\n'],
  ['a line without a field', '{"requestState":"secret"}\n\n'],
])('an event that names a state but is not JSON is replaced: %s', async (_name, event) => {
  for (const isAnswer of [true, false]) {
    const left = await rewritten([Buffer.from(`id: 1\n\n${event}`)], { isAnswer });
    expect(left).toBe('id: 1\n\ndata: {"hidden":true}\n\n');
  }
});

test.each([
  ['a text', 'data: the word requestState\n\n'],
  ['a comment', ': the word requestState\ndata: 1.0\n\n'],
  ['a name', 'event: requestState\ndata: { "a": 1.0 }\n\n'],
])('%s with the word requestState passes, unless the stream answers a call', async (_name, event) => {
  expect(await rewritten([Buffer.from(event)], { isAnswer: false })).toBe(event);
  expect(await rewritten([Buffer.from(event)], { isAnswer: true })).toBe('data: {"hidden":true}\n\n');
});

test('JSON with the word requestState passes byte for byte, unless it has two members with the same name', async () => {
  const event = 'id: 1\ndata: { "delta": "requestState",\ndata: "n": 1.0 }\n\n';
  expect(await rewritten([Buffer.from(event)])).toBe(event);
  const twice = Buffer.from(event.replace('"delta"', '"delta": 1, $&'));
  expect(await rewritten([twice])).toBe('id: 1\ndata: {"delta":"requestState","n":1}\n\n');
});

test('a stream fails at an event over the limit, however many chunks the event arrives in', async () => {
  const chunks = (...texts: readonly string[]) => texts.map((one) => Buffer.from(one));
  for (const fitting of [['data: 1234'], ['data: ', '1234'], ['data: 12345\n\ndata: 6789']])
    expect(await rewritten(chunks(...fitting), { maxEventBytes: 10 })).toBe(fitting.join(''));
  for (const large of [['data: 12345'], ['data: ', '12345'], ['data: 1\n\ndata:', '123456']])
    await expect(rewritten(chunks(...large), { maxEventBytes: 10 })).rejects.toThrow('more than 10 bytes');
});

test('a rewritten message contains no line separator at which Python splits lines', async () => {
  const sent = 'data: {"id":"\\u0085\\u2028\\u2029","requestState":1}\n\n';
  expect(await rewritten([Buffer.from(sent)])).toBe(sent);
});
