import type { Attributes, Meter } from '@opentelemetry/api';
import { ATTRIBUTE, KNOWN } from './attributes.ts';
import type { ChannelName, Happening } from './happenings.ts';

/**
 * Upper bounds of the buckets, seconds: those that OpenTelemetry's semantic conventions give for
 * `http.server.request.duration`, which a call to a KMS or a store is one of.
 */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/** Records happenings of a channel. */
export type Recorder = (happening: Happening) => void;

/** The instruments for events, each made once. */
export function createRecorders(meter: Meter): Readonly<Record<ChannelName, Recorder>> {
  const counter = (name: string, unit: string, description: string, known: readonly Attributes[] = []): Recorder => {
    const instrument = meter.createCounter(name, { unit, description });
    // A counter that appears with its first event has not increased yet, for Prometheus: it begins at nothing.
    for (const attributes of known) instrument.add(0, attributes);
    return ({ attributes }) => instrument.add(1, attributes);
  };
  const duration = (name: string, description: string): Recorder => {
    const advice = { explicitBucketBoundaries: SECONDS };
    const instrument = meter.createHistogram(name, { unit: 's', description, advice });
    return ({ attributes, seconds = 0 }) => instrument.record(seconds, attributes);
  };
  const rotations = counter(
    'sealring.ring.rotations',
    '{rotation}',
    'Keys that this member published, or with error.type failed to publish',
    each(ATTRIBUTE.rotationReason, KNOWN.rotationReason),
  );
  const methods = each(ATTRIBUTE.method, ['tools/call', 'prompts/get', 'resources/read']);
  return {
    refresh: duration('sealring.refresh.duration', 'Passes that read the ring or prove its key at the KMS'),
    rotation: rotations,
    'rotation-failed': rotations,
    'key-version': counter(
      'sealring.kms.new_versions',
      '{look}',
      'Looks at the KMS key that found a version by which no key of the ring is wrapped',
    ),
    'kms-call': duration('sealring.kms.call.duration', 'Calls to the KMS, each attempt by itself'),
    'store-call': duration('sealring.store.call.duration', 'Calls to the ring store'),
    conflict: counter(
      'sealring.ring.conflicts',
      '{conflict}',
      'Writes of the ring that somebody else was faster than',
      [{}],
    ),
    healed: counter('sealring.ring.heals', '{heal}', 'Lost or older rings that this member wrote again', [{}]),
    stale: counter('sealring.codec.stale_tokens', '{token}', 'Opened tokens whose key no longer seals', [{}]),
    rejected: counter(
      'sealring.codec.rejected_tokens',
      '{token}',
      'Tokens that the codec refused',
      each(ATTRIBUTE.rejectReason, KNOWN.codecReason),
    ),
    state: counter('sealring.codec.transitions', '{transition}', 'Changes of the status, by the new one'),
    'boundary-sealed': counter(
      'sealring.boundary.sealed_tokens',
      '{token}',
      'States that the boundary sealed',
      methods,
    ),
    'boundary-opened': counter(
      'sealring.boundary.opened_tokens',
      '{token}',
      'Tokens that the boundary accepted',
      methods,
    ),
    'boundary-refused': counter('sealring.boundary.refused_tokens', '{token}', 'What the boundary refused'),
    'principal-without-subject': counter(
      'sealring.boundary.subjectless_clients',
      '{client}',
      'OAuth clients whose access tokens name no subject',
      [{}],
    ),
  };
}

function each(attribute: string, values: readonly string[]): readonly Attributes[] {
  return values.map((value) => ({ [attribute]: value }));
}
