import type { CodecHealth, KmsCodec, RingProblem } from '@sealring/core';
import { MAX_KEYS_TO_ROTATE, MAX_RING_KEYS, type RingDocument, rotateAt } from '@sealring/core/ring';
import { ringNameOf, type SealringConfig } from '../settings/settings.ts';
import type { Paint } from '../terminal/paint.ts';
import { tableOf } from '../terminal/table.ts';
import { visibleLine } from '../terminal/visible.ts';
import { readDocument, unprovedRevocationsOf } from './document.ts';
import { policyOf } from './policy.ts';
import { LEGEND, timelineOf } from './timeline.ts';

/** What there is to say of a ring; JSON as it stands. */
export interface RingStatus {
  readonly ring: string;
  readonly store: string;
  readonly at: Date;
  readonly sealingKey: string | undefined;
  readonly nextRotation: Date | undefined;
  readonly keys: CodecHealth['keys'];
  readonly problems: CodecHealth['problems'];
  /** Keys in the document, which has room for 64; undefined while the store cannot be read. */
  readonly storedKeys: number | undefined;
  /** Keys that the document calls revoked without a certificate that proves it: servers go on with them. */
  readonly unprovedRevocations: readonly string[];
}

/** Asks a codec that has just read the ring. As a reader it seals nothing: the key that members seal with is told. */
export async function statusOf(codec: KmsCodec, config: SealringConfig): Promise<RingStatus> {
  const stored = await storedDocument(config);
  const { claims, health } = await claimsIn(stored, codec, config);
  const { keys, problems } = health;
  const usable = keys.filter(({ state }) => state !== 'revoked' && state !== 'retired');
  const newest = usable.toSorted((a, b) => a.activates.getTime() - b.activates.getTime()).at(-1);
  const due = newest && rotateAt({ activates: newest.activates.getTime() }, policyOf(config));
  return {
    ring: ringNameOf(config),
    store: config.ring.kind,
    at: new Date(),
    sealingKey: keys.find(({ state }) => state === 'active')?.id,
    nextRotation: due === undefined ? undefined : new Date(due),
    keys,
    problems,
    storedKeys: stored?.entries.length,
    unprovedRevocations: claims,
  };
}

/** Undefined for what is no ring, and while the store fails: that is told by whoever reads the ring itself. */
async function storedDocument(config: SealringConfig): Promise<RingDocument | undefined> {
  const deadlineMs = policyOf(config).kmsTimeoutSeconds * 1_000;
  const stored = await config.ring.read({ signal: AbortSignal.timeout(deadlineMs) }).catch(() => undefined);
  return stored === undefined ? undefined : readDocument(stored.document);
}

/** The document may be newer than what the codec has read: before a claim is told it reads again. */
async function claimsIn(
  stored: RingDocument | undefined,
  codec: KmsCodec,
  { clock }: SealringConfig,
): Promise<{ readonly claims: readonly string[]; readonly health: CodecHealth }> {
  const claimsBy = (health: CodecHealth): readonly string[] =>
    stored === undefined ? [] : unprovedRevocationsOf(stored, health.keys, clock?.wallMs() ?? Date.now());
  const health = codec.health();
  if (claimsBy(health).length === 0) return { claims: [], health };
  await codec.refresh().catch(() => undefined);
  const again = codec.health();
  return { claims: claimsBy(again), health: again };
}

/** The same for people. */
export function statusText(status: RingStatus, paint: Paint): string {
  const { ring, store, at, sealingKey, nextRotation, keys } = status;
  const bars = timelineOf(keys, at);
  const rows = keys.map((key, index) => [
    key.id,
    key.state,
    timeOf(key.activates),
    timeOf(key.opensUntil),
    bars[index] ?? '',
  ]);
  const [head = '', ...lines] = tableOf([['key', 'state', 'seals from', 'opens until', ''], ...rows]);
  return [
    `ring "${visibleLine(ring)}" (${store}) at ${timeOf(at)}`,
    '',
    paint('bold', head),
    ...lines.map((line, index) => (keys[index]?.state === 'active' ? paint('green', line) : line)),
    '',
    LEGEND,
    sealingKey === undefined ? 'no key seals now' : `seals now: ${sealingKey}`,
    ...(nextRotation === undefined ? [] : [`next rotation due: ${timeOf(nextRotation)}`]),
    ...troublesOf(status).flatMap(({ detail, remedy }) => [paint('yellow', `problem: ${detail}`), `  → ${remedy}`]),
    '',
  ].join('\n');
}

/** One thing that somebody has to look at, as `status` and the dashboard show it. */
export type Trouble = Pick<RingProblem, 'detail' | 'remedy'>;

/** Problems, claims and a ring that is nearly full. `nameOf` is what a key is called. */
export function troublesOf(
  { problems, storedKeys = 0, unprovedRevocations }: RingStatus,
  nameOf: (id: string) => string = (id) => id,
): readonly Trouble[] {
  const isTold = problems.some(({ kind }) => kind === 'nearly-full');
  return [
    ...problems.map(({ detail, remedy }) => ({ detail: visibleLine(detail), remedy: visibleLine(remedy) })),
    ...(storedKeys < MAX_KEYS_TO_ROTATE || isTold ? [] : [manyKeys(storedKeys)]),
    ...unprovedRevocations.map((id) => ({ detail: claimText(visibleLine(nameOf(id))), remedy: CLAIM_REMEDY })),
  ];
}

export function manyKeys(count: number): Trouble {
  return {
    detail: `the ring has ${count} of ${MAX_RING_KEYS} keys: no rotation can be asked for, and revoking still works`,
    remedy: 'Find out who rotates so often. A key leaves the ring when its last tokens have ended.',
  };
}

export function claimText(key: string): string {
  return `the ring only claims that key ${key} is revoked: no certificate proves it, and servers go on with the key`;
}

export const CLAIM_REMEDY =
  'Find out who wrote it: he may write the store. If the key is to be revoked: sealring revoke.';

/** Whole seconds, UTC. */
function timeOf(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
