import { channel } from 'node:diagnostics_channel';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { hashedKeyId, InvalidRequestState, type KmsCodec } from '@sealring/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { createServices, join, type Services } from '../../../test/support/failing-services.ts';
import { createOpenTelemetryBridge, type OpenTelemetryBridge } from '../src/index.ts';
import { type SpanCollector, startSpanCollector, type WireSpan } from './span-collector.ts';

let collector: SpanCollector;
let provider: TracerProvider;
let bridge: OpenTelemetryBridge;
let services: Services;
let codec: KmsCodec | undefined;
beforeEach(async () => {
  services = createServices();
  collector = await startSpanCollector();
  const exporter = new OTLPTraceExporter({ url: collector.url });
  provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  bridge = createOpenTelemetryBridge({ tracerProvider: provider });
});
afterEach(async () => {
  bridge.dispose();
  await codec?.close();
  codec = undefined;
  await provider.shutdown();
  await collector[Symbol.asyncDispose]();
  context.disable();
});

async function spans(name: string): Promise<readonly WireSpan[]> {
  await provider.forceFlush();
  return collector.spans.filter((span) => span.name === name);
}

function attributesOf({ attributes }: { readonly attributes: WireSpan['attributes'] }): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const payload = new TextEncoder().encode('state');

test('a span is as long as its call, and a span outside a request has no parent', async () => {
  channel('sealring:kms-call').publish({ provider: 'local', operation: 'sign', ok: true, seconds: 1.5 });
  const [sign] = await spans('sealring.kms.sign');
  const nanoseconds = BigInt(sign?.endTimeUnixNano ?? 0) - BigInt(sign?.startTimeUnixNano ?? 0);
  expect(nanoseconds).toBe(1_500_000_000n);
  expect(sign?.parentSpanId).toBeFalsy();
});

test('keys are named by their hash (F21)', async () => {
  codec = await join(services);
  const [rotation] = await spans('sealring.rotation');
  const [key] = codec.health().keys;
  expect(attributesOf(rotation ?? { attributes: [] })['sealring.key.hash']).toBe(hashedKeyId(key?.id ?? ''));
  expect(JSON.stringify(collector.spans)).not.toContain(key?.id);
});

test('spans and events belong to the trace of the request that waits for them', async () => {
  const member = await join(services);
  codec = member;
  const tracer = provider.getTracer('test');
  await tracer.startActiveSpan('request', async (span) => {
    await member.refresh();
    expect(() => member.unseal('nonsense')).toThrow(InvalidRequestState);
    span.end();
  });
  const [request] = await spans('request');
  const reads = (await spans('sealring.store.read')).filter(({ traceId }) => traceId === request?.traceId);
  expect(reads).toHaveLength(1);
  expect(request?.events.map((event) => [event.name, attributesOf(event)])).toEqual([
    ['sealring.rejected', { 'sealring.ring.name': 'payments', 'sealring.reject.reason': 'malformed' }],
  ]);
});

test('work that continues after a request has ended does not belong to the trace of that request', async () => {
  const member = await join(services);
  codec = member;
  const tracer = provider.getTracer('test');
  const span = tracer.startSpan('request');
  await context.with(trace.setSpan(context.active(), span), async () => {
    span.end();
    await member.refresh();
    expect(member.unseal(member.seal(payload))).toEqual(payload);
  });
  const [request] = await spans('request');
  const [last] = (await spans('sealring.refresh')).slice(-1);
  expect(last).toBeDefined();
  expect(last?.traceId).not.toBe(request?.traceId);
});
