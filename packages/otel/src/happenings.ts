import type { Attributes } from '@opentelemetry/api';
import type { CodecEvents } from '@sealring/core';
import { ATTRIBUTE, BoundedNames, failureIn, KNOWN, keyHashOf, known, numberOf } from './attributes.ts';

/** Maximum number of provider names, and of store names, that labels distinguish. */
const MAX_NAMES = 16;

/** An event in terms of OpenTelemetry: attributes and a duration. */
export interface Happening {
  /** Attributes that become labels, so their values are limited to a fixed set. */
  readonly attributes: Attributes;
  /** Attributes for spans only, so their values are not limited. */
  readonly spanAttributes?: Attributes;
  /** The duration, in seconds. */
  readonly seconds?: number;
  readonly failed?: boolean;
}

/** Reads one event of a channel. */
export type Reader = (event: object) => Happening;

/** Maximum number of rings that the labels of one process distinguish. */
const MAX_RINGS = 64;

/** A reader for each channel of core and mcp. */
export function createReaders(): Readonly<Record<ChannelName, Reader>> {
  const rings = new BoundedNames(MAX_RINGS);
  const ofRing =
    (read: Reader): Reader =>
    (event) => {
      const happening = read(event);
      return { ...happening, attributes: { [ATTRIBUTE.ring]: rings.of(event, 'ringName'), ...happening.attributes } };
    };
  const { core, boundary } = readers();
  return {
    ...(Object.fromEntries(Object.entries(core).map(([name, read]) => [name, ofRing(read)])) as typeof core),
    ...boundary,
  };
}

function readers(): {
  readonly core: Readonly<Record<CoreChannel, Reader>>;
  readonly boundary: Readonly<Record<BoundaryChannel, Reader>>;
} {
  const providers = new BoundedNames(MAX_NAMES);
  const stores = new BoundedNames(MAX_NAMES);
  const core: Record<CoreChannel, Reader> = {
    refresh: (event) => timed(event, {}, failureIn),
    rotation: (event) => ({
      attributes: { [ATTRIBUTE.rotationReason]: known(event, 'reason', KNOWN.rotationReason) },
      spanAttributes: keyAttributes(event),
      seconds: numberOf(event, 'seconds'),
    }),
    'rotation-failed': (event) => ({
      attributes: {
        [ATTRIBUTE.rotationReason]: known(event, 'reason', KNOWN.rotationReason),
        [ATTRIBUTE.errorType]: failureIn(event),
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
        (failed) => known(failed, 'kind', KNOWN.kmsKind),
      ),
    'store-call': (event) =>
      timed(
        event,
        {
          [ATTRIBUTE.storeKind]: stores.of(event, 'store'),
          [ATTRIBUTE.storeOperation]: known(event, 'operation', KNOWN.storeOperation),
        },
        (failed) => known(failed, 'kind', KNOWN.storeKind),
      ),
    // The version itself identifies a KMS key, so it is not reported.
    'key-version': (event) => ({ attributes: { [ATTRIBUTE.kmsProvider]: providers.of(event, 'provider') } }),
    conflict: nothing,
    healed: nothing,
    stale: (event) => ({ attributes: {}, spanAttributes: keyAttributes(event) }),
    rejected: (event) => ({ attributes: { [ATTRIBUTE.rejectReason]: known(event, 'reason', KNOWN.codecReason) } }),
    state: (event) => ({ attributes: { [ATTRIBUTE.status]: known(event, 'status', KNOWN.status) } }),
  };
  const boundary: Record<BoundaryChannel, Reader> = {
    'boundary-sealed': (event) => ({ attributes: { [ATTRIBUTE.method]: known(event, 'method', KNOWN.method) } }),
    'boundary-unsealed': (event) => ({ attributes: { [ATTRIBUTE.method]: known(event, 'method', KNOWN.method) } }),
    'boundary-refused': (event) => ({
      attributes: {
        [ATTRIBUTE.method]: known(event, 'method', KNOWN.method),
        [ATTRIBUTE.direction]: known(event, 'direction', KNOWN.direction),
        [ATTRIBUTE.rejectReason]: known(event, 'reason', KNOWN.boundaryReason),
      },
    }),
    'principal-without-subject': nothing,
  };
  return { core, boundary };
}

const nothing: Reader = () => ({ attributes: {} });

/** The channels that the bridge subscribes to, without `sealring:`. */
export type ChannelName = CoreChannel | BoundaryChannel;

/** The channels whose events contain the name of a ring. */
type CoreChannel = Exclude<NameIn<keyof CodecEvents>, 'wrap' | 'unwrap'>;

type BoundaryChannel = 'boundary-sealed' | 'boundary-unsealed' | 'boundary-refused' | 'principal-without-subject';

type NameIn<Channel> = Channel extends `sealring:${infer Name}` ? Name : never;

function timed(event: object, attributes: Attributes, errorType: (event: object) => string): Happening {
  const failed = Reflect.get(event, 'ok') !== true;
  return {
    attributes: failed ? { ...attributes, [ATTRIBUTE.errorType]: errorType(event) } : attributes,
    seconds: numberOf(event, 'seconds'),
    failed,
  };
}

function keyAttributes(event: object): Attributes {
  const hash = keyHashOf(event);
  return hash === undefined ? {} : { [ATTRIBUTE.keyHash]: hash };
}
