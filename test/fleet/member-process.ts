/**
 * A member of a fleet in its own process, forked by `fleet.ts`: carries out the orders that it gets over IPC, one after
 * another, and counts its calls to the KMS.
 */
import { uptime } from 'node:os';
import { type Clock, createKmsCodec, type KeyWrapper, type KmsCodec, type RingPolicy } from '@sealring/core';
import { type KmsPlace, keyWrapperAt } from './member-kms.ts';
import { type RingPlace, ringAt, type StoreCalls } from './member-ring.ts';

/** Where the ring and the KMS are, and the times. */
export interface StartOrder {
  readonly ring: RingPlace;
  readonly kms: KmsPlace;
  readonly policy: Partial<RingPolicy>;
  /** Whether its clock can be set wrong. Default: the system's clock. */
  readonly hasOwnClock?: boolean;
}

/** A token, with the payload that it must unseal to. */
export interface Sealed {
  readonly token: string;
  readonly payload: string;
}

/** The number of calls to the KMS. */
export interface Calls {
  readonly generate: number;
  readonly wrap: number;
  readonly unwrap: number;
}

interface MemberHealth {
  readonly status: string;
  readonly ready: boolean;
  readonly sealingKey: string | undefined;
  readonly keys: readonly { readonly id: string; readonly state: string; readonly held: boolean }[];
  readonly lastError: string | undefined;
  readonly problems: readonly string[];
}

/** The orders that a member accepts, and its answers. */
export interface Orders {
  start: { given: StartOrder; answer: Calls };
  seal: { given: readonly string[]; answer: { readonly sealed: readonly Sealed[]; readonly failures: string[] } };
  /** Returns the failures: none if every token unsealed to its payload. */
  open: { given: readonly Sealed[]; answer: string[] };
  /** The work of one request: prepares, unseals what the client sent, and seals the next state. */
  serve: { given: Sealed; answer: Sealed };
  rotate: { given: { readonly emergency: boolean }; answer: undefined };
  revoke: { given: { readonly keyId: string }; answer: undefined };
  health: { given: undefined; answer: MemberHealth };
  calls: { given: undefined; answer: Calls };
  storeCalls: { given: undefined; answer: StoreCalls };
  /** Unseals only if it is ready at that moment: a ready member must know every key that another one seals with. */
  openIfReady: { given: readonly Sealed[]; answer: { readonly ready: boolean; readonly failures: string[] } };
  /** From now on the wall clock of this process is wrong by this much; the monotonic clock stays right. */
  setClock: { given: { readonly aheadSeconds: number }; answer: undefined };
  /** Makes the process stop itself, as SIGSTOP does, at its next request for a data key. */
  stopAtNextKey: { given: undefined; answer: undefined };
  close: { given: undefined; answer: undefined };
}

export type OrderName = keyof Orders;

type Order = { [Name in OrderName]: { id: number; name: Name; given: Orders[Name]['given'] } }[OrderName];

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

const counts = { generate: 0, wrap: 0, unwrap: 0 };
let aheadMs = 0;
let stopsAtNextKey = false;
/** The system's clock, wrong by the amount that was set. */
const clock: Clock = {
  wallMs: () => Date.now() + aheadMs,
  monotonicNs: () => process.hrtime.bigint(),
  uptimeMs: () => uptime() * 1_000,
};
let storeCalls: StoreCalls = { reads: 0, writes: 0 };
let codec: KmsCodec | undefined;
let closeStore: (() => Promise<void>) | undefined;

function counted(inner: KeyWrapper): KeyWrapper {
  return {
    provider: inner.provider,
    keyId: inner.keyId,
    supports: inner.supports,
    owns: (wrapped) => inner.owns?.(wrapped) !== false,
    wrap(dataKey, options) {
      counts.wrap += 1;
      return inner.wrap(dataKey, options);
    },
    unwrap(wrapped, options) {
      counts.unwrap += 1;
      return inner.unwrap(wrapped, options);
    },
    async generate(options) {
      counts.generate += 1;
      if (stopsAtNextKey) {
        stopsAtNextKey = false;
        process.kill(process.pid, 'SIGSTOP');
      }
      const dataKey = crypto.getRandomValues(new Uint8Array(32));
      return { dataKey, wrapped: await inner.wrap(dataKey, options) };
    },
  };
}

function running(): KmsCodec {
  if (codec === undefined) throw new Error('the member was not started');
  return codec;
}

function text(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

async function start(given: StartOrder): Promise<Calls> {
  const { store: ring, calls } = await ringAt(given.ring);
  storeCalls = calls;
  closeStore = async () => ring.close?.();
  const keyWrapper = counted(await keyWrapperAt(given.kms));
  codec = await createKmsCodec({
    keyWrapper,
    ring,
    policy: given.policy,
    ...(given.hasOwnClock === true ? { clock } : {}),
  });
  // This is before its first KMS check in the background passes.
  return { ...counts };
}

function seal(payloads: readonly string[]): Orders['seal']['answer'] {
  const sealed: Sealed[] = [];
  const failures: string[] = [];
  for (const payload of payloads) {
    try {
      sealed.push({ token: running().seal(Buffer.from(payload)), payload });
    } catch (error) {
      failures.push(`seal ${payload}: ${text(error)}`);
    }
  }
  return { sealed, failures };
}

/** Synchronously and without `prepare`: only the keys that it holds already. */
function open(sealed: readonly Sealed[]): string[] {
  const failures: string[] = [];
  for (const { token, payload } of sealed) {
    try {
      const opened = Buffer.from(running().unseal(token)).toString();
      if (opened !== payload) failures.push(`open ${payload}: got ${opened}`);
    } catch (error) {
      failures.push(`open ${payload}: ${text(error)}`);
    }
  }
  return failures;
}

async function serve({ token, payload }: Sealed): Promise<Sealed> {
  await running().prepare(token);
  const opened = Buffer.from(running().unseal(token)).toString();
  if (opened !== payload) throw new Error(`got ${opened}`);
  return { token: running().seal(Buffer.from(`${payload}, again`)), payload: `${payload}, again` };
}

function health(): MemberHealth {
  const { status, ready, sealingKey, keys, lastError, problems } = running().health();
  return {
    status,
    ready,
    sealingKey,
    keys: keys.map(({ id, state, held }) => ({ id, state, held })),
    lastError: lastError && `${lastError.source} ${lastError.kind}`,
    problems: problems.map(({ kind }) => kind),
  };
}

function openIfReady(sealed: readonly Sealed[]): Orders['openIfReady']['answer'] {
  const { ready } = running().health();
  return { ready, failures: ready ? open(sealed) : [] };
}

async function close(): Promise<undefined> {
  await codec?.close();
  await closeStore?.();
  return undefined;
}

async function obey(order: Order): Promise<unknown> {
  switch (order.name) {
    case 'start':
      return start(order.given);
    case 'seal':
      return seal(order.given);
    case 'open':
      return open(order.given);
    case 'serve':
      return serve(order.given);
    case 'rotate':
      return running().rotate(order.given);
    case 'revoke':
      return running().revoke(order.given.keyId);
    case 'health':
      return health();
    case 'calls':
      return { ...counts };
    case 'storeCalls':
      return storeCalls;
    case 'openIfReady':
      return openIfReady(order.given);
    case 'setClock':
      aheadMs = order.given.aheadSeconds * 1_000;
      return undefined;
    case 'stopAtNextKey':
      stopsAtNextKey = true;
      return undefined;
    case 'close':
      return close();
  }
}

process.on('message', (order: Order) => {
  obey(order).then(
    (value) => answer({ id: order.id, value }),
    (error: unknown) => answer({ id: order.id, error: text(error) }),
  );
});
// The parent process is gone.
process.on('disconnect', () => process.exit(0));
answer({ id: 0 });

function answer(given: Answer): void {
  process.send?.(given);
}
