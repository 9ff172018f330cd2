import type { CodecHealth, KmsCodec } from '@sealring/core';
import { type Paint } from './paint.ts';
import { completePolicy, rotateAt } from './policy-times.ts';
import { ringNameOf, type SealringConfig } from './settings/settings.ts';
import { tableOf } from './table.ts';
import { LEGEND, timelineOf } from './timeline.ts';
import { visibleLine } from './visible.ts';

/** What there is to say of a ring; JSON as it stands. */
export interface RingStatus {
  readonly ring: string;
  readonly store: string;
  readonly at: Date;
  readonly sealingKey: string | undefined;
  readonly nextRotation: Date | undefined;
  readonly keys: CodecHealth['keys'];
}

/** Asks a codec that has just read the ring. As a reader it seals nothing: the key that members seal with is told. */
export function statusOf(codec: KmsCodec, config: SealringConfig): RingStatus {
  const { keys } = codec.health();
  const usable = keys.filter(({ state }) => state !== 'revoked' && state !== 'retired');
  const newest = usable.toSorted((a, b) => a.activates.getTime() - b.activates.getTime()).at(-1);
  const due = newest && rotateAt({ activates: newest.activates.getTime() }, completePolicy(config.policy));
  return {
    ring: ringNameOf(config),
    store: config.ring.kind,
    at: new Date(),
    sealingKey: keys.find(({ state }) => state === 'active')?.id,
    nextRotation: due === undefined ? undefined : new Date(due),
    keys,
  };
}

/** The same for people. */
export function statusText({ ring, store, at, sealingKey, nextRotation, keys }: RingStatus, paint: Paint): string {
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
    '',
  ].join('\n');
}

/** Whole seconds, UTC. */
function timeOf(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
