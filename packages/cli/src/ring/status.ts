import type { CodecHealth, KmsCodec, RingProblem, StoredRing } from '@sealring/core';
import { MAX_KEYS_TO_ROTATE, MAX_RING_KEYS, type RingDocument } from '@sealring/core/ring';
import { keyFingerprint, type RingKey } from '@sealring/dashboard';
import { lineOf } from '../foreign-error.ts';
import { ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { visibleLine } from '../terminal/visible.ts';
import { parsedDocument, unverifiedRevocationsOf } from './document.ts';
import { keyName, withKeyNames } from './key-name.ts';
import { isLive } from './key-state.ts';
import { policyOf } from './policy.ts';
import { ROTATION_REMEDY, rotationOf } from './rotation.ts';

/** The report of `status` on a ring; `--json` prints it unchanged. */
export interface RingStatus {
  readonly ring: string;
  readonly store: string;
  readonly at: Date;
  /** `ok`: nothing to do. `attention`: the ring works, but `problems` is not empty. `failing`: no key may seal. */
  readonly condition: 'ok' | 'attention' | 'failing';
  /** The name of the key that members seal with. */
  readonly sealingKey: string | undefined;
  readonly nextRotation: Date | undefined;
  readonly keys: readonly StatusKey[];
  /** Problems that an operator must solve, each with its remedy. */
  readonly problems: readonly StatusProblem[];
  /** Number of keys in the document, of at most 64; undefined while the store cannot be read. */
  readonly storedKeys: number | undefined;
  /**
   * Names of the keys that the document lists as revoked without a valid certificate: servers still use them. Undefined
   * while the store cannot be read.
   */
  readonly unverifiedRevocations: readonly string[] | undefined;
}

/** A key of the ring. */
interface StatusKey extends RingKey {
  /** The name used in commands, events, spans and the dashboard; tokens and the ring document contain the `id`. */
  readonly name: string;
  /** The value that identifies the key in the metric `sealring.ring.sealing_key.fingerprint`. */
  readonly fingerprint: number;
}

/** One problem, with its remedy. */
export type StatusProblem = Pick<RingProblem, 'detail' | 'remedy'> & { readonly kind: string };

/**
 * When each key was revoked, by key id, as read from the document. Pass the same map to every call of {@link statusOf}
 * in a process, so that the times are still known while the store cannot be read.
 */
export type RevocationTimes = Map<string, Date>;

/** Describes a ring that a codec has just read. A reader seals nothing: `sealingKey` is the key that members seal with. */
export async function statusOf(
  codec: KmsCodec,
  config: SealringConfig,
  revocations: RevocationTimes = new Map(),
): Promise<RingStatus> {
  const read = await storedDocument(config);
  const stored = read.document;
  for (const { id, revoked } of stored?.entries ?? []) {
    if (revoked !== undefined) revocations.set(id, new Date(revoked.at));
  }
  const { unverified, health, failure } = await verifiedHealth(stored, codec, config);
  const times = policyOf(config);
  const live = health.keys.filter(isLive);
  const newest = live.toSorted((a, b) => a.activates.getTime() - b.activates.getTime()).at(-1);
  const rotation = newest && rotationOf(millisecondsOf(newest), times, nowOf(config));
  const sealing = health.keys.find(({ state }) => state === 'active')?.id;
  const problems: readonly StatusProblem[] = [
    ...problemsOf(health, stored),
    ...(rotation === undefined || rotation.state === 'due-later'
      ? []
      : [{ kind: 'rotation-overdue', detail: rotation.detail, remedy: ROTATION_REMEDY }]),
    ...(read.failure === undefined ? [] : [unreadDocument(read.failure)]),
    ...unverified.map((id) =>
      failure === undefined ? unverifiedRevocation(keyName(id)) : uncheckedRevocation(keyName(id), failure),
    ),
  ];
  return {
    ring: ringNameOf(config),
    store: config.ring.kind,
    at: new Date(nowOf(config)),
    condition: sealing === undefined ? 'failing' : problems.length > 0 ? 'attention' : 'ok',
    sealingKey: sealing === undefined ? undefined : keyName(sealing),
    nextRotation: rotation?.due,
    keys: health.keys.map((key) => ({
      name: keyName(key.id),
      fingerprint: keyFingerprint(key.id),
      ...key,
      ...(key.state === 'revoked' && { revokedAt: revocations.get(key.id) }),
    })),
    problems,
    storedKeys: stored?.entries.length,
    unverifiedRevocations: read.document === undefined ? undefined : unverified.map(keyName),
  };
}

function nowOf({ clock }: SealringConfig): number {
  return clock?.wallMs() ?? Date.now();
}

function millisecondsOf({ created, activates, sealsUntil, unsealsUntil }: CodecHealth['keys'][number]) {
  return {
    created: created.getTime(),
    activates: activates.getTime(),
    sealsUntil: sealsUntil.getTime(),
    opensUntil: unsealsUntil.getTime(),
  };
}

/** The stored document, or why there is none to show. */
type StoredDocument =
  | { readonly document: RingDocument; readonly failure?: undefined }
  | { readonly document?: undefined; readonly failure: string };

async function storedDocument(config: SealringConfig): Promise<StoredDocument> {
  const deadlineMs = policyOf(config).kmsTimeoutSeconds * 1_000;
  let stored: StoredRing | undefined;
  try {
    stored = await config.ring.read({ signal: AbortSignal.timeout(deadlineMs) });
  } catch (error) {
    return { failure: lineOf(error) };
  }
  if (stored === undefined) return { failure: 'the store has no ring' };
  const document = parsedDocument(stored.document);
  return 'refusal' in document ? { failure: document.refusal } : { document };
}

/**
 * The health of the codec, and the revocations that it could not verify. The stored document may be newer than the ring
 * that the codec has read, so the codec reads the ring again before a revocation is reported as unverified. `failure`
 * is the reason why that read failed.
 */
async function verifiedHealth(
  stored: RingDocument | undefined,
  codec: KmsCodec,
  config: SealringConfig,
): Promise<{ readonly unverified: readonly string[]; readonly health: CodecHealth; readonly failure?: string }> {
  const unverifiedIn = (health: CodecHealth): readonly string[] =>
    stored === undefined ? [] : unverifiedRevocationsOf(stored, health.keys, nowOf(config));
  const health = codec.health();
  if (unverifiedIn(health).length === 0) return { unverified: [], health };
  let failure: { readonly failure?: string } = {};
  try {
    await codec.refresh();
  } catch (error) {
    failure = { failure: lineOf(error) };
  }
  const again = codec.health();
  return { unverified: unverifiedIn(again), health: again, ...failure };
}

/** The problems that the codec reports, and the problem of a ring that is nearly full. */
function problemsOf(health: CodecHealth, stored: RingDocument | undefined): readonly StatusProblem[] {
  const count = stored?.entries.length ?? 0;
  const isReported = health.problems.some(({ kind }) => kind === 'nearly-full');
  return [
    ...shownProblems(health, stored?.entries),
    ...(count < MAX_KEYS_TO_ROTATE || isReported ? [] : [nearlyFull(count)]),
  ];
}

/** The problems that the codec reports, with the names of keys in place of their ids. */
export function shownProblems(
  { problems, keys }: Pick<CodecHealth, 'problems' | 'keys'>,
  entries: readonly { readonly id: string }[] = [],
): readonly StatusProblem[] {
  const ids = [...keys, ...entries].map(({ id }) => id);
  return problems.map(({ kind, detail, remedy }) => ({
    kind,
    detail: visibleLine(withKeyNames(detail, ids)),
    remedy: visibleLine(remedy),
  }));
}

/** A ring with so many keys that no rotation can be requested. */
export function nearlyFull(count: number): StatusProblem {
  return {
    kind: 'nearly-full',
    detail: `the ring has ${count} of ${MAX_RING_KEYS} keys: it rejects requested rotations, but not revocations`,
    remedy: 'Find out which process rotates the ring so often. A key leaves the ring after its last token has expired.',
  };
}

/** A revocation in the document that no certificate confirms. `name` is the name of the key. */
export function unverifiedRevocation(name: string): StatusProblem {
  return {
    kind: 'unverified-revocation',
    detail: `the document lists key ${name} as revoked without a valid certificate: servers still use the key`,
    remedy: 'Find out who wrote it: they can write to the store. To revoke the key, run: sealring revoke.',
  };
}

function unreadDocument(failure: string): StatusProblem {
  return {
    kind: 'document-unread',
    detail: `the stored ring could not be read again: ${visibleLine(failure)}. Revocations without a valid certificate are not shown`,
    remedy: 'Run "sealring doctor", which finds the cause.',
  };
}

function uncheckedRevocation(name: string, failure: string): StatusProblem {
  return {
    kind: 'unchecked-revocation',
    detail: `the document lists key ${name} as revoked, but its certificate could not be checked: ${visibleLine(failure)}`,
    remedy: 'Run "sealring doctor", which finds the cause.',
  };
}
