import type { Attributes } from '@opentelemetry/api';
import { ATTRIBUTE, BoundedNames, KNOWN, keyHashOf, known, numberOf } from './attributes.ts';

/** Providers and kinds of stores that are told apart. */
const MAX_NAMES = 16;

/** What an event says, in the words of OpenTelemetry. */
export interface Happening {
  /** Bounded values only: they become labels. */
  readonly attributes: Attributes;
  /** What may take any number of values, for spans alone. */
  readonly spanAttributes?: Attributes;
  /** How long it took, seconds. */
  readonly seconds?: number;
  readonly failed?: boolean;
}

/** Turns one event of a channel into what is recorded of it. */
export type Reader = (event: object) => Happening;

const nothing: Reader = () => ({ attributes: {} });

/** A reader for every channel that core and mcp publish on. */
export function createReaders(): Readonly<Record<ChannelName, Reader>> {
  const providers = new BoundedNames(MAX_NAMES);
  const stores = new BoundedNames(MAX_NAMES);
  return {
    refresh: (event) => timed(event, {}, KNOWN.refreshKind),
    rotation: (event) => ({
      attributes: { [ATTRIBUTE.rotationReason]: known(event, 'reason', KNOWN.rotationReason) },
      spanAttributes: keyAttributes(event),
      seconds: numberOf(event, 'seconds'),
    }),
    'rotation-failed': (event) => ({
      attributes: {
        [ATTRIBUTE.rotationReason]: known(event, 'reason', KNOWN.rotationReason),
        [ATTRIBUTE.errorType]: known(event, 'kind', KNOWN.refreshKind),
      },
      seconds: numberOf(event, 'seconds'),
      failed: true,
    }),
    'kms-call': (event) =>
      timed(
        event,
        {
          [ATTRIBUTE.kmsProvider]: providers.of(event, 'provider'),
          [ATTRIBUTE.kmsOperation]: known(event, 'operation', KNOWN.kmsOperation),
        },
        KNOWN.kmsKind,
      ),
    'store-call': (event) =>
      timed(
        event,
        {
          [ATTRIBUTE.storeKind]: stores.of(event, 'store'),
          [ATTRIBUTE.storeOperation]: known(event, 'operation', KNOWN.storeOperation),
        },
        KNOWN.storeKind,
      ),
    // The version itself is an id of a KMS key: it is in no label, and no span is made of it.
    'key-version': (event) => ({ attributes: { [ATTRIBUTE.kmsProvider]: providers.of(event, 'provider') } }),
    conflict: nothing,
    healed: nothing,
    stale: (event) => ({ attributes: {}, spanAttributes: keyAttributes(event) }),
    rejected: (event) => ({ attributes: { [ATTRIBUTE.rejectReason]: known(event, 'reason', KNOWN.codecReason) } }),
    state: (event) => ({ attributes: { [ATTRIBUTE.status]: known(event, 'status', KNOWN.status) } }),
    'boundary-sealed': (event) => ({ attributes: { [ATTRIBUTE.method]: known(event, 'method', KNOWN.method) } }),
    'boundary-opened': (event) => ({ attributes: { [ATTRIBUTE.method]: known(event, 'method', KNOWN.method) } }),
    'boundary-refused': (event) => ({
      attributes: {
        [ATTRIBUTE.method]: known(event, 'method', KNOWN.method),
        [ATTRIBUTE.direction]: known(event, 'direction', KNOWN.direction),
        [ATTRIBUTE.rejectReason]: known(event, 'reason', KNOWN.boundaryReason),
      },
    }),
    'principal-without-subject': nothing,
  };
}

/** The channels that are listened to, without `sealring:`. */
export type ChannelName =
  | 'refresh'
  | 'rotation'
  | 'rotation-failed'
  | 'key-version'
  | 'kms-call'
  | 'store-call'
  | 'conflict'
  | 'healed'
  | 'stale'
  | 'rejected'
  | 'state'
  | 'boundary-sealed'
  | 'boundary-opened'
  | 'boundary-refused'
  | 'principal-without-subject';

function timed(event: object, attributes: Attributes, kinds: readonly string[]): Happening {
  const failed = Reflect.get(event, 'ok') !== true;
  return {
    attributes: failed ? { ...attributes, [ATTRIBUTE.errorType]: known(event, 'kind', kinds) } : attributes,
    seconds: numberOf(event, 'seconds'),
    failed,
  };
}

function keyAttributes(event: object): Attributes {
  const hash = keyHashOf(event);
  return hash === undefined ? {} : { [ATTRIBUTE.keyHash]: hash };
}
