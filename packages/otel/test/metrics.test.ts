import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { InvalidRequestState, type KmsCodec } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { createServices, join, type Services } from '../../../test/support/failing-services.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { type ScrapedMeter, startScrapedMeter } from '../../../test/support/prometheus-exporter.ts';
import { createOpenTelemetryBridge, type OpenTelemetryBridge } from '../src/index.ts';

let meter: ScrapedMeter;
let bridge: OpenTelemetryBridge;
let services: Services;
const codecs: KmsCodec[] = [];
beforeEach(async () => {
  services = createServices();
  meter = await startScrapedMeter();
  bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
});
afterEach(async () => {
  bridge.dispose();
  for (const codec of codecs.splice(0)) await codec.close();
  await meter[Symbol.asyncDispose]();
});

async function start(): Promise<KmsCodec> {
  const codec = await join(services);
  codecs.push(codec);
  return codec;
}

async function value(sample: string): Promise<number | undefined> {
  return (await meter.samples()).get(sample);
}

const payload = new TextEncoder().encode('state');

function refused(codec: KmsCodec, token: string): void {
  expect(() => codec.unseal(token)).toThrow(InvalidRequestState);
}

test('a codec’s calls, rotations and refusals are counted by reason, and failures in an outage by kind', async () => {
  const codec = await start();
  bridge.observe(codec, { ringName: 'payments' });
  const token = codec.seal(payload);
  codec.unseal(token);
  refused(codec, 'nonsense');
  refused(codec, `${token.slice(0, -8)}AAAAAAAA`);
  refused(codec, `${token.slice(0, -8)}AAAAAAAA`);
  await codec.rotate();
  await codec.refresh();
  services.kmsFailing = 'denied';
  await codec.rotate().catch(() => undefined);
  services.storeDown = true;
  await codec.refresh().catch(() => undefined);
  const samples = await meter.samples();
  const [kms, store] = [
    'sealring_kms_provider="local",sealring_kms_operation=',
    'sealring_store_kind="memory",sealring_store_operation=',
  ];
  const counts: Record<string, number> = {
    [`kms_call_duration_count|${kms}"unwrap"`]: 2,
    [`kms_call_duration_count|${kms}"wrap",error_type="denied"`]: 1,
    [`store_call_duration_count|${store}"write"`]: 2,
    [`store_call_duration_count|${store}"read",error_type="unavailable"`]: 1,
    'refresh_duration_count|': 1,
    'refresh_duration_count|error_type="store unavailable"': 1,
    'ring_rotations_total|sealring_rotation_reason="initial"': 1,
    'ring_rotations_total|sealring_rotation_reason="requested"': 1,
    'ring_rotations_total|sealring_rotation_reason="requested",error_type="kms denied"': 1,
    'codec_rejected_tokens_total|sealring_reject_reason="malformed"': 1,
    'codec_rejected_tokens_total|sealring_reject_reason="authentication failed"': 2,
    'codec_status|sealring_status="degraded"': 1,
    'codec_transitions_total|sealring_status="degraded"': 1,
  };
  const found = Object.keys(counts).map((key) => {
    const [name, labels] = key.split('|');
    return [key, samples.get(`sealring_${name}{${['sealring_ring_name="payments"', labels].filter(Boolean).join()}}`)];
  });
  expect(Object.fromEntries(found)).toEqual(counts);
});

describe('labels', () => {
  test('labels contain no key id, token, payload or key (F21)', async () => {
    const canary = randomBytes(18).toString('base64url');
    const codec = await start();
    bridge.observe(codec, { ringName: 'payments' });
    const token = codec.seal(new TextEncoder().encode(canary));
    codec.unseal(token);
    refused(codec, `${token}${canary}`);
    await codec.rotate();
    const page = await meter.scrape();
    expect(page).toContain('sealring_codec_rejected_tokens_total');
    for (const { id } of codec.health().keys) expect(page).not.toContain(id);
    expect(page).not.toContain(canary);
    expect(page).not.toContain(token.slice(4, 40));
  });

  test('labels have known values only, whatever is published (F23)', async () => {
    for (let i = 0; i < 1_000; i++) {
      channel('sealring:rejected').publish({ ringName: 'payments', reason: `reason ${i}` });
      channel('sealring:stale').publish({ ringName: `ring-${i}`, keyId: 'x' });
      channel('sealring:boundary-refused').publish({ direction: `d${i}`, method: `m${i}`, reason: `r${i}` });
      channel('sealring:kms-call').publish({ provider: `p${i}`, operation: `o${i}`, ok: false, kind: `k${i}` });
      channel('sealring:store-call').publish({ store: `s ${i}`, operation: 'read', ok: true, seconds: Number.NaN });
      channel('sealring:refresh').publish(`text ${i}`);
      channel('sealring:state').publish(null);
    }
    expect(
      await value(
        'sealring_codec_rejected_tokens_total{sealring_ring_name="payments",sealring_reject_reason="_OTHER"}',
      ),
    ).toBe(1_000);
    const stale = [...(await meter.samples())].filter(([name]) => name.startsWith('sealring_codec_stale_tokens_total'));
    // Besides `payments`, sixty-three rings are counted by name, and the rest together.
    expect(stale.filter(([, count]) => count > 0)).toHaveLength(64);
    const counts = [...(await meter.samples()).keys()].filter((name) => name.includes('_duration_count'));
    // Sixteen providers are counted by name, and the rest together.
    expect(counts.filter((name) => name.startsWith('sealring_kms_call'))).toHaveLength(17);
    expect(counts.filter((name) => name.startsWith('sealring_store_call'))).toHaveLength(1);
  });
});

describe('the end of a bridge', () => {
  test('stops all counting and reporting, and removes the subscriptions', async () => {
    const codec = await start();
    bridge.observe(codec, { ringName: 'payments' });
    refused(codec, 'nonsense');
    bridge.dispose();
    bridge.dispose();
    refused(codec, 'nonsense');
    const samples = await meter.samples();
    expect(
      samples.get(
        'sealring_codec_rejected_tokens_total{sealring_ring_name="payments",sealring_reject_reason="malformed"}',
      ),
    ).toBe(1);
    expect([...samples.keys()].filter((name) => name.startsWith('sealring_codec_status'))).toEqual([]);
    expect(channel('sealring:rejected').hasSubscribers).toBe(false);
    bridge.observe(codec, { ringName: 'payments' });
    expect([...(await meter.samples()).keys()].filter((name) => name.includes('_status'))).toEqual([]);
  });

  test('`using` disposes the bridge', async () => {
    bridge.dispose();
    {
      using second = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
      expect(second).toBeDefined();
      expect(channel('sealring:refresh').hasSubscribers).toBe(true);
    }
    expect(channel('sealring:refresh').hasSubscribers).toBe(false);
  });
});
