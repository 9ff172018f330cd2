import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from './attributes.ts';
import type { ChannelName, Happening } from './happenings.ts';

/** The channels whose events become spans. */
const SPANS: Partial<Record<ChannelName, { readonly kind: SpanKind; nameOf(happening: Happening): string }>> = {
  refresh: { kind: SpanKind.INTERNAL, nameOf: () => 'sealring.refresh' },
  rotation: { kind: SpanKind.INTERNAL, nameOf: () => 'sealring.rotation' },
  'rotation-failed': { kind: SpanKind.INTERNAL, nameOf: () => 'sealring.rotation' },
  'kms-call': {
    kind: SpanKind.CLIENT,
    nameOf: ({ attributes }) => `sealring.kms.${String(attributes[ATTRIBUTE.kmsOperation])}`,
  },
  'store-call': {
    kind: SpanKind.CLIENT,
    nameOf: ({ attributes }) => `sealring.store.${String(attributes[ATTRIBUTE.storeOperation])}`,
  },
};

/** The channels whose events are added to the active span, which is that of the request. */
const NOTED: readonly ChannelName[] = ['stale', 'rejected', 'boundary-sealed', 'boundary-unsealed', 'boundary-refused'];

/** Adds an event to the traces. A span is created after it has ended, with its start time. */
export function recordSpan(tracer: Tracer, channel: ChannelName, happening: Happening): void {
  const { spanAttributes = {}, seconds = 0, failed = false } = happening;
  const attributes = { ...happening.attributes, ...spanAttributes };
  const active = trace.getActiveSpan();
  if (NOTED.includes(channel)) {
    active?.addEvent(`sealring.${channel.replace('-', '.')}`, attributes);
    return;
  }
  const shape = SPANS[channel];
  if (shape === undefined) return;
  // A timer keeps the context of the request in which it was set: a span that has ended is not used as the parent.
  const parent = active?.isRecording() === true ? context.active() : ROOT_CONTEXT;
  const endTime = Date.now();
  const options = { kind: shape.kind, startTime: endTime - seconds * 1_000, attributes };
  const span = tracer.startSpan(shape.nameOf(happening), options, parent);
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}
