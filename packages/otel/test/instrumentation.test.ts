import { readFileSync } from 'node:fs';
import { join as pathOf } from 'node:path';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { InvalidRequestState, type KmsCodec } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { createServices, join } from '../../../test/support/failing-services.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { type ScrapedMeter, startScrapedMeter } from '../../../test/support/prometheus-exporter.ts';
import { SealringInstrumentation } from '../src/index.ts';

const { version } = JSON.parse(readFileSync(pathOf(import.meta.dirname, '../package.json'), 'utf8'));
const READY = 'sealring_codec_ready{sealring_ring_name="payments"}';
const REFUSED =
  'sealring_codec_rejected_tokens_total{sealring_ring_name="payments",sealring_reject_reason="malformed"}';

describe('the instrumentation', () => {
  let meter: ScrapedMeter;
  let codec: KmsCodec;
  let unregister: () => void;
  let sealring: SealringInstrumentation;
  const refuse = (): void => expect(() => codec.unseal('nonsense')).toThrow(InvalidRequestState);
  const value = async (sample: string): Promise<number | undefined> => (await meter.samples()).get(sample);

  beforeEach(async () => {
    meter = await startScrapedMeter();
    codec = await join(createServices());
    sealring = new SealringInstrumentation();
    const { meterProvider } = meter;
    const tracerProvider = new TracerProvider({});
    unregister = registerInstrumentations({ instrumentations: [sealring], meterProvider, tracerProvider });
  });
  afterEach(async () => {
    unregister();
    await codec.close();
    await meter[Symbol.asyncDispose]();
  });

  test('reports to the providers that it is registered with, and nothing after it is unregistered', async () => {
    const stop = sealring.observe(codec, { ringName: 'payments' });
    refuse();
    expect([await value(READY), await value(REFUSED)]).toEqual([1, 1]);
    unregister();
    refuse();
    expect(await value(REFUSED)).toBe(1);
    stop();
  });

  test('the instrumentation still observes its codecs when another provider is set, and counts each event once', async () => {
    const stop = sealring.observe(codec, { ringName: 'payments' });
    await using other = await startScrapedMeter();
    sealring.setMeterProvider(other.meterProvider);
    refuse();
    const samples = await other.samples();
    expect([samples.get(READY), samples.get(REFUSED)]).toEqual([1, 1]);
    expect(await value(REFUSED)).toBe(0);
    stop();
    expect((await other.samples()).get(READY)).toBe(0);
  });

  test('a codec keeps its name when its predecessor is stopped late, even after a change of provider', async () => {
    const old = await join(createServices());
    const stopOld = sealring.observe(old);
    await old.close();
    await meter.samples();
    const stop = sealring.observe(codec);
    stopOld();
    await using other = await startScrapedMeter();
    sealring.setMeterProvider(other.meterProvider);
    const ready = async (): Promise<number | undefined> =>
      (await other.samples()).get('sealring_codec_ready{sealring_ring_name="default"}');
    expect(await ready()).toBe(1);
    stop();
    expect(await ready()).toBe(0);
    await using last = await startScrapedMeter();
    sealring.setMeterProvider(last.meterProvider);
    expect([...(await last.samples()).keys()].filter((name) => name.includes('codec_ready'))).toEqual([]);
  });

  test('reports nothing before enable() if it was created with enabled: false', async () => {
    unregister();
    const off = new SealringInstrumentation({ enabled: false });
    off.setMeterProvider(meter.meterProvider);
    off.observe(codec, { ringName: 'payments' });
    expect(off.getConfig()).toEqual({ enabled: false });
    expect(await value(READY)).toBeUndefined();
    off.enable();
    expect(await value(READY)).toBe(1);
    off.disable();
  });

  test('refuses invalid options and a name in use at once, even while it is disabled', async () => {
    const off = new SealringInstrumentation({ enabled: false });
    const observe = (one: KmsCodec, options?: object) => () => off.observe(one, options);
    expect(observe(codec, { ringName: 'not a label!' })).toThrow(RangeError);
    expect(observe(codec, { name: 'payments' })).toThrow(/unknown option "name"/);
    expect(observe({} as KmsCodec)).toThrow(TypeError);
    const stop = off.observe(codec, { ringName: 'payments' });
    expect(observe(codec, { ringName: 'payments' })).toThrow(/"payments" is already being observed/);
    stop();
    const old = await join(createServices());
    off.observe(old, { ringName: 'payments' });
    await old.close();
    expect(observe(codec, { ringName: 'payments' })).not.toThrow();
    off.setMeterProvider(meter.meterProvider);
    off.enable();
    expect(await value(READY)).toBe(1);
    off.disable();
  });

  test('the metrics have the name and the version of this package as their scope', async () => {
    expect([sealring.instrumentationName, sealring.instrumentationVersion]).toEqual(['@sealring/otel', version]);
    const scopes: unknown[] = [];
    const { meterProvider } = meter;
    const watched = new SealringInstrumentation({ enabled: false });
    watched.setMeterProvider({
      getMeter: (name, scopeVersion, options) => {
        scopes.push([name, scopeVersion]);
        return meterProvider.getMeter(name, scopeVersion, options);
      },
    });
    watched.enable();
    watched.disable();
    expect(scopes).toEqual([['@sealring/otel', version]]);
  });

  test('refuses unknown options by name', () => {
    expect(() => new SealringInstrumentation({ enable: true } as object)).toThrow(/unknown option "enable"/);
  });
});
