import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from './attributes.ts';
import type { ChannelName, Happening } from './happenings.ts';

/**
 * The channels whose events become spans, with the kind and the name of the span, and the attribute that completes the
 * name.
 */
const SPANS: Partial<Record<ChannelName, readonly [kind: SpanKind, name: string, operation?: string]>> = {
  refresh: [SpanKind.INTERNAL, 'sealring.refresh'],
  rotation: [SpanKind.INTERNAL, 'sealring.rotation'],
  'rotation-failed': [SpanKind.INTERNAL, 'sealring.rotation'],
  'kms-call': [SpanKind.CLIENT, 'sealring.kms', ATTRIBUTE.kmsOperation],
  'store-call': [SpanKind.CLIENT, 'sealring.store', ATTRIBUTE.storeOperation],
};

/** The channels whose events are added to the active span, which is the span of the request. */
const NOTED: readonly ChannelName[] = ['stale', 'rejected', 'boundary-sealed', 'boundary-unsealed', 'boundary-refused'];

/** Adds an event to the traces. A span is created when the operation has ended, with the time at which it started. */
export function recordSpan(tracer: Tracer, channel: ChannelName, happening: Happening): void {
  const { seconds = 0, failed } = happening;
  const attributes = { ...happening.attributes, ...happening.spanAttributes };
  const active = trace.getActiveSpan();
  if (NOTED.includes(channel)) {
    active?.addEvent(`sealring.${channel.replace('-', '.')}`, attributes);
    return;
  }
  const shape = SPANS[channel];
  if (shape === undefined) return;
  // A timer keeps the context of the request in which it was set, so the active span may have ended. Such a span is not
  // used as the parent.
  const parent = active?.isRecording() === true ? context.active() : ROOT_CONTEXT;
  const endTime = Date.now();
  const [kind, prefix, operation] = shape;
  const options = { kind, startTime: endTime - seconds * 1_000, attributes };
  const name = operation === undefined ? prefix : `${prefix}.${String(attributes[operation])}`;
  const span = tracer.startSpan(name, options, parent);
  if (failed === true) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}
