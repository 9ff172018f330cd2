import { closeSync, openSync, readSync } from 'node:fs';

/** The place where a mark appears, and its form. */
export interface Sighting {
  readonly file: string;
  readonly form: string;
  /** The text around it, on one line. */
  readonly around: string;
}

const CHUNK = 1024 * 1024;
const AROUND = 120;
/** A form that is spread over columns or lines is longer than itself. */
const OVERLAP = 1_024;

/** How bytes may show up in an output, by name; texts without white space. */
export function formsOf(mark: Uint8Array): ReadonlyMap<string, Buffer> {
  const bytes = Buffer.from(mark);
  const hex = bytes.toString('hex');
  const forms = new Map<string, Buffer>([
    ['raw', bytes],
    ['hex', Buffer.from(hex)],
    ['HEX', Buffer.from(hex.toUpperCase())],
    ['numbers', Buffer.from([...bytes].join(','))],
    // A program that decodes the bytes as text still shows most of them.
    ['latin1', Buffer.from(bytes.toString('latin1'), 'utf8')],
  ]);
  for (const encoding of ['base64', 'base64url'] as const) {
    for (const before of [0, 1, 2])
      forms.set(`${encoding} behind ${before}`, Buffer.from(piece(bytes, encoding, before)));
  }
  return forms;
}

/** The characters that depend on the mark alone, with `before` other bytes in the first group of three. */
function piece(mark: Buffer, encoding: 'base64' | 'base64url', before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), mark])
    .toString(encoding)
    .replaceAll('=', '');
  const decided = Math.floor(((before + mark.length) * 8) / 6);
  return text.slice(Math.ceil((before * 8) / 6), decided);
}

/** Reads files in pieces and reports where the mark appears. At most one sighting for each file and form. */
export function sightings(mark: Uint8Array, files: readonly string[]): readonly Sighting[] {
  const forms = formsOf(mark);
  return files.flatMap((file) => {
    const found = new Map<string, Sighting>();
    for (const chunk of chunksOf(file)) {
      // Long lists are printed in columns, and base64 in lines.
      const dense = Buffer.from(chunk.toString('latin1').replaceAll(/[ \t\r\n]+/g, ''), 'latin1');
      for (const [form, bytes] of forms) {
        if (found.has(form)) continue;
        const text = [chunk, dense].find((one) => one.includes(bytes));
        if (text !== undefined) found.set(form, { file, form, around: textBefore(text, text.indexOf(bytes)) });
      }
    }
    return [...found.values()];
  });
}

function textBefore(text: Buffer, at: number): string {
  return text.toString('latin1', Math.max(0, at - AROUND), at).replaceAll(/[^\x20-\x7e]+/g, ' ');
}

/** The contents of a file, each piece with the end of the one before it. */
function* chunksOf(file: string): Generator<Buffer> {
  const handle = openSync(file, 'r');
  try {
    let end = Buffer.alloc(0);
    for (;;) {
      const buffer = Buffer.alloc(CHUNK);
      const count = readSync(handle, buffer);
      if (count === 0) return;
      const chunk = Buffer.concat([end, buffer.subarray(0, count)]);
      yield chunk;
      end = chunk.subarray(-OVERLAP);
    }
  } finally {
    closeSync(handle);
  }
}
