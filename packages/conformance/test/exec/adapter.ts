import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

// A key wrapper or a ring store that speaks the exec protocol, with calls that take some milliseconds. Its second argument
// names a fault in FAULTS, which replaces the answers to some requests.

interface Request {
  readonly id: number;
  readonly op: string;
  readonly instance: string;
  readonly role?: string;
  readonly ring?: string;
  readonly context?: object;
  readonly dataKey?: string;
  readonly wrapped?: { readonly provider: string; readonly keyId: string; readonly wrapped: string };
  readonly document?: string;
  readonly expected?: string | null;
  readonly watcher?: string;
  readonly abort?: number;
  readonly aborted?: boolean;
}

type Answer = Record<string, unknown>;

const [contract = '', fault = ''] = process.argv.slice(2);
/** Faults that answer at once, or are slow to read an abort. */
const isRemote = fault === 'answers-at-once' || fault === 'ends-late';

const failure = (kind: string, more: object = {}): Answer => ({ failure: { kind, message: `it is ${kind}`, ...more } });

const KEYS: Readonly<Record<string, Buffer>> = { self: randomBytes(32), other: randomBytes(32) };
const roles = new Map<string, string>();
const closed = new Set<string>();

function seal(key: Buffer, dataKey: string, context: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  const sealed = [nonce, cipher.update(dataKey, 'base64'), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64');
}

function unseal(key: Buffer, wrapped: string, context: string): string | undefined {
  const bytes = Buffer.from(wrapped, 'base64');
  if (bytes.length !== 60) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 });
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('base64');
  } catch {
    return undefined;
  }
}

function keyWrapperAnswer({ op, instance, role = '', context = {}, dataKey = '', wrapped }: Request): Answer {
  if (op === 'describe') return { target: { name: 'a key wrapper', supports: { remote: isRemote, versions: false } } };
  if (op === 'create') {
    roles.set(instance, role);
    const supports = { context: true, authenticated: true, keyVersions: null };
    return { keyWrapper: { provider: 'acme', keyId: role, supports, has: ['owns', 'close'] } };
  }
  if (op === 'close') {
    closed.add(instance);
    return {};
  }
  const keyId = roles.get(instance) ?? '';
  const key = KEYS[keyId] ?? randomBytes(32);
  const aad = JSON.stringify([keyId, Object.entries(context).toSorted(([one], [other]) => (one < other ? -1 : 1))]);
  const facts = { provider: 'acme', operation: op };
  if (keyId === 'unreachable' || closed.has(instance)) return failure('unavailable', facts);
  if (op === 'wrap') {
    const bytes = Buffer.from(dataKey, 'base64');
    if (bytes.length !== 32 || bytes.every((byte) => byte === bytes[0])) return failure('argument');
    return { wrapped: { provider: 'acme', keyId, wrapped: seal(key, dataKey, aad) } };
  }
  const isOwn = wrapped?.provider === 'acme' && wrapped.keyId === keyId;
  if (op === 'owns') return { owned: isOwn };
  if (op === 'unwrap') {
    const opened = isOwn ? unseal(key, wrapped.wrapped, aad) : undefined;
    return opened === undefined ? failure('corrupt', facts) : { dataKey: opened };
  }
  return { error: 'unknown op' };
}

const documents = new Map<string, { readonly document: string; readonly revision: string }>();
const rings = new Map<string, string>();
const watchers = new Map<string, string>();

function notify(ring: string): void {
  for (const [watcher, watched] of watchers) if (watched === ring) sayAll([{ changed: watcher }]);
}

function ringStoreAnswer({ op, instance, ring = '', document = '', expected = null, watcher = '' }: Request): Answer {
  if (op === 'describe') {
    const supports = { serviceDate: true, uniqueRevisions: true };
    return { target: { name: 'a ring store', supports, can: ['remove', 'plant'] } };
  }
  if (op === 'create') {
    rings.set(instance, ring);
    return { store: { kind: 'acme', location: 'acme://rings', has: ['watch', 'close'] } };
  }
  const name = rings.get(instance) ?? ring;
  const stored = documents.get(name);
  if (op === 'remove') documents.delete(name);
  else if (op === 'plant') documents.set(name, { document, revision: randomBytes(9).toString('hex') });
  else if (op === 'watch') watchers.set(watcher, name);
  else if (op === 'unwatch') {
    if (fault !== 'notifies-after-the-end') watchers.delete(watcher);
  } else if (op === 'read') {
    const dates = [Date.now()];
    if (stored === undefined) return { absent: true, dates };
    const { length } = Buffer.from(stored.document);
    if (length > 262_144) return { ...failure('too-large', { revision: stored.revision }), dates };
    return length === 0 ? { ...failure('corrupt', { revision: stored.revision }), dates } : { stored, dates };
  } else if (op === 'write') {
    if (Buffer.from(document).length > 262_144) return failure('too-large');
    if ((stored?.revision ?? null) !== expected) return failure('conflict');
    const revision = randomBytes(9).toString('hex');
    documents.set(name, { document, revision });
    notify(name);
    return { revision };
  } else if (op !== 'close') return { error: 'unknown op' };
  return {};
}

function sayAll(answers: readonly unknown[]): void {
  process.stdout.write(answers.map((answer) => `${JSON.stringify(answer)}\n`).join(''));
}

type Fault = (request: Request, answer: Answer) => void;
/** Every `wrap` and `read`. */
const isCall = ({ op }: Request): boolean => op === 'wrap' || op === 'read';
const isRefusal = (_: Request, answer: Answer): boolean => 'failure' in answer;
const says = (change: (answer: Answer, id: number) => unknown): Fault => {
  return ({ id }, answer) => sayAll([change({ ...answer }, id)]);
};
const last = new Map<string, Answer>();

const FAULTS: Readonly<Record<string, readonly [when: (request: Request, answer: Answer) => boolean, what: Fault]>> = {
  hangs: [isCall, () => undefined],
  crashes: [
    isCall,
    () => {
      throw new Error('the crash of a test');
    },
  ],
  'exits-silently': [isCall, () => process.exit(0)],
  'says-text': [isCall, () => void process.stdout.write('Calling…\n')],
  'says-text-after': [isCall, (_, answer) => void process.stdout.write(`${JSON.stringify(answer)}\nDEBUG called\n`)],
  'answers-twice': [isCall, (_, answer) => sayAll([answer, answer])],
  'answers-null': [isCall, says(() => null)],
  'answers-nothing': [isCall, says((_, id) => ({ id }))],
  'answers-another': [isCall, says((answer, id) => ({ ...answer, id: id + 1_000 }))],
  'answers-both': [isCall, says((answer) => ({ ...answer, revision: '1', signature: 'AAAA' }))],
  'answers-token': [isCall, says((_, id) => ({ id, token: 'x' }))],
  'answers-a-number': [
    isCall,
    says((_, id) => ({ id, ...(contract === 'key-wrapper' ? { wrapped: 7 } : { stored: 7 }) })),
  ],
  'answers-base64url': [isCall, says((_, id) => ({ id, wrapped: { provider: 'acme', keyId: 'x', wrapped: '-_-_' } }))],
  'answers-error': [isCall, says((_, id) => ({ id, error: 'no such key' }))],
  'answers-unknown-kind': [isRefusal, says((_, id) => ({ id, ...failure('broken') }))],
  'answers-error-to-refusal': [isRefusal, says((_, id) => ({ id, error: 'tag mismatch' }))],
  'answers-the-one-before': [
    isCall,
    (request, answer) => {
      sayAll([{ ...(last.get(request.op) ?? answer), id: request.id }]);
      last.set(request.op, answer);
    },
  ],
  'tells-text-for-dates': [isCall, says((answer) => ({ ...answer, dates: 'today' }))],
  'tells-seconds': [isCall, says((answer) => ({ ...answer, dates: [Math.floor(Date.now() / 1_000)] }))],
  'reads-failure-as-absent': [isRefusal, says((_, id) => ({ id, absent: true }))],
  'hangs-at-close': [({ op }) => op === 'close', () => undefined],
  'hangs-at-describe': [({ op }) => op === 'describe', () => undefined],
  'answers-error-to-describe': [({ op }) => op === 'describe', says((_, id) => ({ id, error: 'unknown op' }))],
  'has-wrong-supports': [
    ({ op }) => op === 'describe',
    says((_, id) => ({ id, target: { supports: { remotely: true } } })),
  ],
  'fails-to-create': [
    ({ op }) => op === 'create',
    says((_, id) => ({ id, ...failure('denied', { provider: 'acme' }) })),
  ],
  'fails-to-watch': [({ op }) => op === 'watch', says((_, id) => ({ id, error: 'no push today' }))],
  'notifies-strangers': [({ op }) => op === 'write', (_, answer) => sayAll([{ changed: 'w999' }, answer])],
};

const open = new Set<number>();

async function obey(request: Request): Promise<void> {
  const { id, op, abort, aborted } = request;
  if (abort !== undefined) return void open.delete(abort);
  open.add(id);
  // Answers do not come in the order of the requests.
  if (fault === 'ends-late') await pause(60);
  else if (fault !== 'answers-at-once') await pause(Math.random() * 3);
  if (fault === 'waits-for-aborts' && isCall(request) && aborted !== true) {
    while (open.has(id)) await pause(5);
  }
  const isAborted = aborted === true || !open.has(id);
  const facts = { provider: 'acme', operation: op };
  const answerOf = contract === 'key-wrapper' ? keyWrapperAnswer : ringStoreAnswer;
  const isIgnored = fault === 'ignores-aborts' || (fault === 'ends-late' && aborted !== true);
  const ended = isAborted && !isIgnored ? failure('unavailable', facts) : undefined;
  const answer = { id, ...(ended ?? answerOf(request)) };
  const [when, what] = FAULTS[fault] ?? [];
  if (when?.(request, answer) === true) what?.(request, answer);
  else sayAll([answer]);
}

if (fault === 'says-hello') process.stdout.write('Adapter 1.0 ready\n');
createInterface({ input: process.stdin }).on('line', (line) => void obey(JSON.parse(line)));
