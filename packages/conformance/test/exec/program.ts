import { spawn } from 'node:child_process';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

// A codec that speaks the exec protocol. Its first argument may name a fault in FAULTS, which replaces the answers to
// some requests.

interface Request {
  readonly id: number;
  readonly op: string;
  readonly instance: string;
  readonly role?: string;
  readonly payload?: string;
  readonly token?: string;
}

const [A, B, OTHER] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const KEYS: Readonly<Record<string, readonly Buffer[]>> = {
  self: [A],
  peer: [A],
  stranger: [OTHER],
  rotated: [B, A],
};

const instances = new Map<string, readonly Buffer[]>();

function open(key: Buffer, bytes: Buffer): Buffer | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAuthTag(bytes.subarray(-16));
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
  } catch {
    return undefined;
  }
}

function answerTo({ op, instance, role = '', payload = '', token = '' }: Request): Record<string, unknown> {
  if (op === 'create') {
    const keys = KEYS[role];
    if (keys === undefined) return { error: 'no such role' };
    instances.set(instance, keys);
    return {};
  }
  const keys = instances.get(fault === 'one-codec-for-all' ? 'i1' : instance) ?? [A];
  if (op === 'seal') {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', keys[0] ?? A, nonce, { authTagLength: 16 });
    const body = Buffer.concat([cipher.update(payload, 'base64'), cipher.final()]);
    return { token: Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64url') };
  }
  if (op !== 'unseal') return { error: 'unknown op' };
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token || bytes.length < 28) return { invalid: 'malformed' };
  for (const key of keys) {
    const opened = open(key, bytes);
    if (opened !== undefined) return { payload: opened.toString('base64') };
  }
  return { invalid: 'seal' };
}

function say(text: string | Uint8Array): void {
  process.stdout.write(text);
}

function sayAll(answers: readonly unknown[]): void {
  say(answers.map((answer) => `${JSON.stringify(answer)}\n`).join(''));
}

const isOp =
  (op: string) =>
  (request: Request): boolean =>
    request.op === op;
const isLong = ({ payload = '' }: Request): boolean => payload.length > 4 * 33;
const isHuge = ({ token = '' }: Request): boolean => token.length >= 1_000_000;

type Fault = readonly [when: (request: Request) => boolean, what: (request: Request, answer: object) => void];

/** Writes a changed answer. */
const says = (op: string, change: (answer: Record<string, unknown>, id: number) => unknown): Fault => [
  isOp(op),
  ({ id }, answer) => sayAll([change({ ...answer }, id)]),
];

const FAULTS: Readonly<Record<string, Fault>> = {
  'hangs-at-create': [isOp('create'), () => undefined],
  'hangs-at-seal': [isOp('seal'), () => undefined],
  'spins-at-huge': [
    isHuge,
    () => {
      for (;;);
    },
  ],
  'crashes-at-seal': [
    isOp('seal'),
    () => {
      throw new Error('the crash of a test');
    },
  ],
  'crashes-at-huge': [isHuge, () => process.exit(3)],
  'crashes-when-long': [isLong, () => process.exit(3)],
  'refuses-long': [isLong, ({ id }) => sayAll([{ id, error: 'too long' }])],
  'repeats-the-token': [
    ({ token = '' }) => token.length > 20,
    ({ token }, answer) => sayAll(['invalid' in answer ? { ...answer, invalid: `bad: ${token}` } : answer]),
  ],
  'exits-silently': [isOp('unseal'), () => process.exit(0)],
  'is-killed': [isOp('unseal'), () => process.kill(process.pid, 'SIGKILL')],
  'says-half-a-line': [
    isOp('seal'),
    ({ id }) => {
      process.stdout.write(`{"id":${id},"tok`, () => process.exit(0));
    },
  ],
  'says-text': [isOp('seal'), () => say('Sealing…\n')],
  'says-text-first': [isOp('seal'), (_, answer) => say(`DEBUG seal\n${JSON.stringify(answer)}\n`)],
  'says-text-after': [isOp('seal'), (_, answer) => say(`${JSON.stringify(answer)}\nDEBUG sealed\n`)],
  'says-binary': [isOp('seal'), () => say(Uint8Array.of(0x22, 0xff, 0xfe, 0x22, 0x0a))],
  'answers-twice': [isOp('seal'), (_, answer) => sayAll([answer, answer])],
  'answers-null': says('seal', () => null),
  'answers-an-array': says('seal', (answer) => [answer]),
  'answers-nothing': says('seal', (_, id) => ({ id })),
  'answers-another': says('seal', (answer, id) => ({ ...answer, id: id - 1 })),
  'answers-no-id': says('seal', ({ token }) => ({ token })),
  'answers-id-as-text': says('seal', (answer, id) => ({ ...answer, id: String(id) })),
  'answers-both': says('seal', (answer) => ({ ...answer, payload: '' })),
  'answers-payload-to-seal': says('seal', (_, id) => ({ id, payload: '' })),
  'answers-invalid-to-seal': says('seal', (_, id) => ({ id, invalid: 'no' })),
  'answers-a-number': says('seal', (_, id) => ({ id, token: 7 })),
  'answers-base64url': says('unseal', (answer, id) =>
    answer['payload'] === undefined ? answer : { id, payload: '-_-_' },
  ),
  'answers-unpadded': says('unseal', (answer, id) =>
    answer['payload'] === undefined ? answer : { id, payload: 'AA' },
  ),
  'answers-error-to-create': says('create', (_, id) => ({ id, error: 'no keys here' })),
  'answers-error-to-unseal': says('unseal', (answer, id) =>
    answer['invalid'] === undefined ? answer : { id, error: 'tag mismatch' },
  ),
  'answers-nulls': says('seal', (answer) => ({ token: null, payload: null, invalid: null, error: null, ...answer })),
  'floods-lines': [
    isOp('seal'),
    (_, answer) => {
      sayAll([answer]);
      const flood = (): void => void process.stdout.write('flood\n'.repeat(1_000), flood);
      flood();
    },
  ],
  'floods-one-line': [
    isOp('seal'),
    () => {
      const flood = (): void => void process.stdout.write('x'.repeat(1_000_000), flood);
      flood();
    },
  ],
  'floods-stderr': [
    isOp('seal'),
    (_, answer) => {
      const flood = (): void => void process.stderr.write('e'.repeat(100_000), () => setTimeout(flood, 20));
      flood();
      sayAll([answer]);
    },
  ],
  'has-no-rotation': [({ role }) => role === 'rotated', ({ id }) => sayAll([{ id, error: 'unknown role' }])],
};

const [fault = '', note = ''] = process.argv.slice(2);
/** Waits for two requests and answers them in reverse order. */
const waiting: unknown[] = [];

if (fault === 'says-hello') say('Codec 1.0 ready\n');
if (fault === 'never-starts') await new Promise((resolve) => setTimeout(resolve, 600_000));
if (fault === 'stays') {
  // Ignores the end of its input and SIGTERM, and has a child process that holds its output.
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1_000);
  const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'inherit' });
  writeFileSync(note, `${process.pid} ${pid}`);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request: Request = JSON.parse(line);
  const answer = { id: request.id, ...answerTo(request) };
  const [when, what] = FAULTS[fault] ?? [];
  if (fault === 'answers-in-pairs') {
    waiting.unshift(answer);
    if (waiting.length === 2) sayAll(waiting.splice(0));
  } else if (when?.(request) === true) what?.(request, answer);
  else sayAll([answer]);
});
