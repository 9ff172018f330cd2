import type { Attributes, Counter, Meter } from '@opentelemetry/api';
import { ATTRIBUTE, KNOWN } from './attributes.ts';
import type { ChannelName, Happening } from './happenings.ts';

/**
 * The upper bounds of the buckets, in seconds, as OpenTelemetry's semantic conventions give them for
 * `http.server.request.duration`.
 */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** Records the events of a channel. */
type Recorder = (happening: Happening) => void;

/** The instruments for events. */
export interface Recorders {
  readonly of: Readonly<Record<ChannelName, Recorder>>;
  /**
   * Starts the counters of a ring at 0. Prometheus sees no increase in a counter that first appears with the value 1.
   */
  startRing(ringName: string): void;
}

function counting(instrument: Counter): Recorder {
  return ({ attributes }) => instrument.add(1, attributes);
}

/** Creates the instruments for events. */
export function createRecorders(meter: Meter): Recorders {
  const starts: ((own: Attributes) => void)[] = [];
  const counter = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(name, { unit, description });
  const ringCounter = (name: string, unit: string, description: string, known: readonly Attributes[]): Recorder => {
    const instrument = counter(name, unit, description);
    starts.push((own) => {
      for (const attributes of known) instrument.add(0, { ...own, ...attributes });
    });
    return counting(instrument);
  };
  const boundaryCounter = (name: string, unit: string, description: string, known: readonly Attributes[]): Recorder => {
    const instrument = counter(name, unit, description);
    for (const attributes of known) instrument.add(0, attributes);
    return counting(instrument);
  };
  const duration = (name: string, description: string): Recorder => {
    const advice = { explicitBucketBoundaries: SECONDS };
    const instrument = meter.createHistogram(name, { unit: 's', description, advice });
    return ({ attributes, seconds = 0 }) => instrument.record(seconds, attributes);
  };
  const rotations = ringCounter(
    'sealring.ring.rotations',
    '{rotation}',
    'Keys that this member published, or, with error.type, failed to publish',
    each(ATTRIBUTE.rotationReason, KNOWN.rotationReason),
  );
  const methods = each(ATTRIBUTE.method, ['tools/call', 'prompts/get', 'resources/read']);
  const of: Record<ChannelName, Recorder> = {
    refresh: duration('sealring.refresh.duration', 'Refreshes: reads of the ring and KMS checks'),
    rotation: rotations,
    'rotation-failed': rotations,
    'key-version': ringCounter(
      'sealring.kms.new_versions',
      '{version}',
      'New versions of the KMS key that have not wrapped a key of the ring yet',
      [],
    ),
    'kms-call': duration('sealring.kms.call.duration', 'Calls to the KMS; each attempt counts'),
    'store-call': duration('sealring.store.call.duration', 'Calls to the ring store'),
    conflict: ringCounter(
      'sealring.ring.conflicts',
      '{conflict}',
      'Ring writes that lost to a write by another member',
      [{}],
    ),
    healed: ringCounter(
      'sealring.ring.heals',
      '{heal}',
      'Lost or outdated ring documents that this member wrote back',
      [{}],
    ),
    stale: ringCounter('sealring.codec.stale_tokens', '{token}', 'Unsealed tokens whose key no longer seals', [{}]),
    rejected: ringCounter(
      'sealring.codec.rejected_tokens',
      '{token}',
      'Tokens that the codec refused',
      each(ATTRIBUTE.rejectReason, KNOWN.codecReason),
    ),
    state: ringCounter('sealring.codec.transitions', '{transition}', 'Status changes, by new status', []),
    'boundary-sealed': boundaryCounter(
      'sealring.boundary.sealed_tokens',
      '{token}',
      'States that the boundary sealed',
      methods,
    ),
    'boundary-unsealed': boundaryCounter(
      'sealring.boundary.unsealed_tokens',
      '{token}',
      'Tokens that the boundary accepted',
      methods,
    ),
    'boundary-refused': boundaryCounter(
      'sealring.boundary.refused_tokens',
      '{token}',
      'Tokens and states that the boundary refused',
      [],
    ),
    'principal-without-subject': boundaryCounter(
      'sealring.boundary.subjectless_clients',
      '{client}',
      'OAuth clients whose access tokens have no subject',
      [{}],
    ),
  };
  const started = new Set<string>();
  return {
    of,
    startRing(ringName) {
      if (started.has(ringName)) return;
      started.add(ringName);
      for (const start of starts) start({ [ATTRIBUTE.ring]: ringName });
    },
  };
}

function each(attribute: string, values: readonly string[]): readonly Attributes[] {
  return values.map((value) => ({ [attribute]: value }));
}
