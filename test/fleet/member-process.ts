/**
 * A member of a fleet in a process of its own, forked by `fleet.ts`: does what it is told over IPC, one order after
 * another, and counts what it asks of the KMS.
 */
import { createKmsCodec, fileRing, type KeyWrapper, type KmsCodec, type RingPolicy } from '@sealring/core';
import { redisRing } from '@sealring/redis';
import { type KmsPlace, keyWrapperAt } from './member-kms.ts';

/** Where the ring and the KMS are, and the times. */
export interface StartOrder {
  readonly ring: { readonly file: string } | { readonly redis: string; readonly key: string };
  readonly kms: KmsPlace;
  readonly policy: Partial<RingPolicy>;
}

/** A token, with what it must open to. */
export interface Sealed {
  readonly token: string;
  readonly payload: string;
}

/** How often the KMS was asked. */
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
}

/** What a member can be told, and what it answers. */
export interface Orders {
  start: { given: StartOrder; answer: Calls };
  seal: { given: readonly string[]; answer: { readonly sealed: readonly Sealed[]; readonly failures: string[] } };
  /** Answers what went wrong: nothing, when every token opened to its payload. */
  open: { given: readonly Sealed[]; answer: string[] };
  rotate: { given: { readonly emergency: boolean }; answer: undefined };
  revoke: { given: { readonly keyId: string }; answer: undefined };
  health: { given: undefined; answer: MemberHealth };
  calls: { given: undefined; answer: Calls };
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
  const { ring: place } = given;
  const ring = 'file' in place ? fileRing(place.file) : redisRing({ url: place.redis, key: place.key });
  closeStore = async () => ring.close?.();
  const keyWrapper = counted(await keyWrapperAt(given.kms));
  codec = await createKmsCodec({ keyWrapper, ring, policy: given.policy });
  // Before the first proof of its background passes.
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

/** Synchronously and without `prepare`: what a member has to hold already. */
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

function health(): MemberHealth {
  const { status, ready, sealingKey, keys, lastError } = running().health();
  return {
    status,
    ready,
    sealingKey,
    keys: keys.map(({ id, state, held }) => ({ id, state, held })),
    lastError: lastError?.kind,
  };
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
    case 'rotate':
      return running().rotate(order.given);
    case 'revoke':
      return running().revoke(order.given.keyId);
    case 'health':
      return health();
    case 'calls':
      return { ...counts };
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
// Whoever forked it is gone.
process.on('disconnect', () => process.exit(0));
answer({ id: 0 });

function answer(given: Answer): void {
  process.send?.(given);
}
