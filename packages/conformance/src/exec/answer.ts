import { shownText } from './shown.ts';

/** What the program is asked. */
export type Request =
  | { readonly op: 'create'; readonly instance: string; readonly role: Role }
  | { readonly op: 'seal'; readonly instance: string; readonly payload: string }
  | { readonly op: 'unseal'; readonly instance: string; readonly token: string };

/** Which of the codecs of a target an instance is. */
export type Role = 'self' | 'peer' | 'stranger' | 'rotated';

/** What the program answered, one of these. */
export type Answer =
  | { readonly kind: 'created' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'payload'; readonly payload: Uint8Array }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'error'; readonly text: string };

/** An answer is not what the protocol says. The message says what it is instead. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

const KINDS = ['token', 'payload', 'invalid', 'error'] as const;
/** What may answer which request, beside `error`. */
const ANSWERS: Readonly<Record<Request['op'], readonly string[]>> = {
  create: [],
  seal: ['token'],
  unseal: ['payload', 'invalid'],
};

/** @throws {WrongAnswer} for a line that is not an answer to request `id`. */
export function readAnswer(line: string, op: Request['op'], id: number): Answer {
  const answer = readObject(line);
  if (answer['id'] !== id) throw new WrongAnswer(`is for another request: ${shownText(line)}`);
  // A serializer may write null for what is not there.
  const given = KINDS.filter((kind) => answer[kind] !== undefined && answer[kind] !== null);
  const [kind] = given;
  if (given.length > 1) throw new WrongAnswer(`has both ${given.join(' and ')}`);
  if (kind === undefined) {
    if (op === 'create') return { kind: 'created' };
    throw new WrongAnswer(`has neither ${ANSWERS[op].join(' nor ')} nor error: ${shownText(line)}`);
  }
  if (kind !== 'error' && !ANSWERS[op].includes(kind)) throw new WrongAnswer(`has ${kind}`);
  const value = answer[kind];
  if (typeof value !== 'string') throw new WrongAnswer(`has a ${kind} that is not a string`);
  if (kind === 'token') return { kind, token: value };
  if (kind === 'payload') return { kind, payload: bytesOf(value) };
  return kind === 'invalid' ? { kind, reason: value } : { kind, text: value };
}

function readObject(line: string): Record<string, unknown> {
  let answer: unknown;
  try {
    answer = JSON.parse(line);
  } catch {
    throw new WrongAnswer(`is not JSON: ${shownText(line)}`);
  }
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) {
    throw new WrongAnswer(`is not a JSON object: ${shownText(line)}`);
  }
  return { ...answer };
}

function bytesOf(payload: string): Uint8Array {
  const bytes = Buffer.from(payload, 'base64');
  if (bytes.toString('base64') !== payload) {
    throw new WrongAnswer('has a payload that is not base64 as RFC 4648 writes it, with padding');
  }
  return Uint8Array.from(bytes);
}
