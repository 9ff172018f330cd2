import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from './attributes.ts';
import type { ChannelName, Happening } from './happenings.ts';

/** What becomes a span of its own. Calls to a service are those of a client. */
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

/** What is noted on the span of the request that it happened in. */
const NOTED: readonly ChannelName[] = ['stale', 'rejected', 'boundary-sealed', 'boundary-opened', 'boundary-refused'];

/** Adds a happening to the traces. Spans are made when it has ended, with the time at which it began. */
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
  // A timer belongs for ever to the request in which it was set: a span that has ended is nobody's parent any more.
  const parent = active?.isRecording() === true ? context.active() : ROOT_CONTEXT;
  const endTime = Date.now();
  const options = { kind: shape.kind, startTime: endTime - seconds * 1_000, attributes };
  const span = tracer.startSpan(shape.nameOf(happening), options, parent);
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}
