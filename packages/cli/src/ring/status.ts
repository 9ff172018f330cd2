import type { CodecHealth, KmsCodec, RingProblem, StoredRing } from '@sealring/core';
import { MAX_KEYS_TO_ROTATE, MAX_RING_KEYS, type RingDocument } from '@sealring/core/ring';
import { keyFingerprint, type RingKey } from '@sealring/dashboard';
import { lineOf } from '../foreign-error.ts';
import { nowOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { visibleLine } from '../terminal/visible.ts';
import { parsedDocument, unusedKeysOf, unverifiedRevocationsOf } from './document.ts';
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
  const { unverified, unused, health, failure } = await verifiedHealth(stored, codec, config);
  const times = policyOf(config);
  const live = health.keys.filter(isLive);
  const newest = live.toSorted((a, b) => a.activates.getTime() - b.activates.getTime()).at(-1);
  const rotation = newest && rotationOf(millisecondsOf(newest), times, nowOf(config));
  const sealing = health.keys.find(({ state }) => state === 'active')?.id;
  const problems: readonly StatusProblem[] = [
    ...problemsOf(health, stored).filter(({ kind }) => unused.length === 0 || kind !== 'unreadable-key'),
    ...(unused.length === 0 ? [] : [unreadableKeys(unused.map(keyName), failure)]),
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

/** The health of a codec, with the ids of the keys that the stored document does not agree on. */
interface VerifiedHealth {
  readonly health: CodecHealth;
  /** Keys whose revocation the codec could not verify. */
  readonly unverified: readonly string[];
  /** Keys in use that the codec does not use. */
  readonly unused: readonly string[];
  /** Why the codec could not read the ring again. */
  readonly failure?: string;
}

/**
 * Compares the codec with the stored document, which may be newer than the ring that the codec has read. So the codec
 * reads the ring again before a difference is reported.
 */
async function verifiedHealth(
  stored: RingDocument | undefined,
  codec: KmsCodec,
  config: SealringConfig,
): Promise<VerifiedHealth> {
  const compared = (health: CodecHealth): VerifiedHealth => {
    if (stored === undefined) return { health, unverified: [], unused: [] };
    const unused = unusedKeysOf(stored, health.keys, nowOf(config), config.acceptKeysCreatedAfter);
    const unverified = unverifiedRevocationsOf(stored, health.keys, nowOf(config));
    return { health, unverified, unused: unused.map(({ id }) => id) };
  };
  const first = compared(codec.health());
  if (first.unverified.length === 0 && first.unused.length === 0) return first;
  let failure: { readonly failure?: string } = {};
  try {
    await codec.refresh();
  } catch (error) {
    failure = { failure: lineOf(error) };
  }
  return { ...compared(codec.health()), ...failure };
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
    detail: `the document lists key ${name} as revoked, but has no valid certificate for it: servers still use the key`,
    remedy: 'Find out who wrote the document: they can write to the store. To revoke the key, run: sealring revoke.',
  };
}

/** Keys in use that this process does not use. `failure` is the reason why it could not read the ring again. */
function unreadableKeys(names: readonly string[], failure: string | undefined): StatusProblem {
  const why =
    failure === undefined
      ? 'it cannot unwrap them, or no key of the ring vouches for them'
      : `the ring could not be read again: ${visibleLine(failure)}`;
  return {
    kind: 'unreadable-key',
    detail: `this configuration cannot use ${names.length} of the stored keys (${names.join(', ')}): ${why}`,
    remedy:
      'Configure the same key wrappers as the servers. If they are the same, someone wrote forged keys to the store: see ' +
      'the guide on incidents.',
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
