import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import {
  type CodecHealth,
  createKmsCodec,
  hashedKeyId,
  InvalidRequestState,
  type KeyWrapper,
  type KmsCodec,
} from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @boundaries-ignore what the tests of all packages share is no package
import { createServices, join, type Services } from '../../../test/support/failing-services.ts';
// @boundaries-ignore what the tests of all packages share is no package
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

describe('a codec in normal operation', () => {
  test('its calls, rotations and refusals are counted by reason', async () => {
    const codec = await start();
    const token = codec.seal(payload);
    codec.unseal(token);
    refused(codec, 'nonsense');
    refused(codec, `${token.slice(0, -8)}AAAAAAAA`);
    refused(codec, `${token.slice(0, -8)}AAAAAAAA`);
    await codec.rotate();
    await codec.refresh();
    const samples = await meter.samples();
    expect(
      samples.get(
        'sealring_kms_call_duration_count{sealring_ring_name="payments",sealring_kms_provider="local",sealring_kms_operation="unwrap"}',
      ),
    ).toBeGreaterThanOrEqual(2);
    expect(
      samples.get(
        'sealring_store_call_duration_count{sealring_ring_name="payments",sealring_store_kind="memory",sealring_store_operation="write"}',
      ),
    ).toBeGreaterThanOrEqual(2);
    expect(
      samples.get('sealring_ring_rotations_total{sealring_ring_name="payments",sealring_rotation_reason="initial"}'),
    ).toBe(1);
    expect(
      samples.get('sealring_ring_rotations_total{sealring_ring_name="payments",sealring_rotation_reason="requested"}'),
    ).toBe(1);
    expect(
      samples.get(
        'sealring_codec_rejected_tokens_total{sealring_ring_name="payments",sealring_reject_reason="malformed"}',
      ),
    ).toBe(1);
    expect(
      samples.get(
        'sealring_codec_rejected_tokens_total{sealring_ring_name="payments",sealring_reject_reason="authentication failed"}',
      ),
    ).toBe(2);
    expect(samples.get('sealring_refresh_duration_count{sealring_ring_name="payments"}')).toBe(1);
  });

  test('its health is read at each collection', async () => {
    const codec = await start();
    bridge.observe(codec, { ringName: 'payments' });
    const own = 'sealring_ring_name="payments"';
    const before = await meter.samples();
    expect(before.get(`sealring_codec_status{${own},sealring_status="ok"}`)).toBe(1);
    expect(before.get(`sealring_codec_status{${own},sealring_status="failing"}`)).toBe(0);
    expect(before.get(`sealring_codec_ready{${own}}`)).toBe(1);
    expect(before.get(`sealring_codec_can_seal{${own}}`)).toBe(1);
    expect(before.get(`sealring_codec_can_unseal{${own}}`)).toBe(1);
    const remaining = before.get(`sealring_codec_seal_remaining{${own}}`) ?? 0;
    // sealOutageSeconds, and what has passed since the proof.
    expect(remaining).toBeLessThanOrEqual(3_600);
    expect(remaining).toBeGreaterThan(3_500);
    expect(before.get(`sealring_ring_seal_remaining{${own}}`)).toBeGreaterThan(86_400);
    expect(before.get(`sealring_codec_kms_check_age{${own}}`)).toBeLessThan(60);
    expect(before.get(`sealring_codec_refresh_age{${own}}`)).toBeLessThan(60);
    const hash = Buffer.from(hashedKeyId(codec.health().sealingKey ?? ''), 'base64url');
    expect(before.get(`sealring_ring_sealing_key_fingerprint{${own}}`)).toBe(
      Number.parseInt(hash.toString('hex', 0, 6), 16),
    );
    expect(before.get(`sealring_codec_problem{${own},sealring_problem_kind="nearly-full"}`)).toBe(0);
    await codec.rotate();
    const after = await meter.samples();
    expect(after.get(`sealring_ring_key_count{${own},sealring_key_state="active"}`)).toBe(1);
    expect(after.get(`sealring_ring_key_count{${own},sealring_key_state="propagating"}`)).toBe(1);
  });
});

/** Times that let a look at the KMS key come within seconds. */
const quick = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 0.5,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 0.5,
  sealOutageSeconds: 30,
  storeOutageSeconds: 60,
  propagationSeconds: 32,
  rotateEverySeconds: 3_600,
  keyVersionEverySeconds: 0.5,
};

describe('a new version of the KMS key', () => {
  test('is counted by provider, and its name is not exported', async () => {
    const { keyWrapper: inner, ring } = services;
    let version = 'canary-1';
    const keyWrapper: KeyWrapper = {
      ...inner,
      supports: { ...inner.supports, keyVersions: true },
      wrap: async (...args) => ({ ...(await inner.wrap(...args)), keyId: `${inner.keyId}/${version}` }),
      unwrap: (wrapped, options) => inner.unwrap({ ...wrapped, keyId: inner.keyId }, options),
    };
    codecs.push(await createKmsCodec({ ringName: 'payments', keyWrapper, ring, policy: quick }));
    version = 'canary-2';
    const rotations =
      'sealring_ring_rotations_total{sealring_ring_name="payments",sealring_rotation_reason="key-version"}';
    expect(await value(rotations)).toBe(0);
    await expect.poll(() => value(rotations), { timeout: 20_000, interval: 100 }).toBe(1);
    const samples = await meter.samples();
    expect(
      samples.get('sealring_kms_new_versions_total{sealring_ring_name="payments",sealring_kms_provider="local"}'),
    ).toBeGreaterThanOrEqual(1);
    expect([...samples.keys()].join('\n')).not.toContain('canary');
  });
});

describe('health problems', () => {
  test('are exported by kind, unknown kinds are not, and none for a codec that was removed', async () => {
    const codec = await start();
    const problem = (kind: string): CodecHealth['problems'][number] =>
      ({ kind, detail: 'canary', remedy: 'canary' }) as CodecHealth['problems'][number];
    let problems = [problem('contested'), problem('unreadable-key'), problem('service-clock'), problem('canary')];
    const stop = bridge.observe({ health: () => ({ ...codec.health(), problems }) }, { ringName: 'payments' });
    const told = async (): Promise<readonly string[]> =>
      [...(await meter.samples())]
        .filter(([name, number]) => name.startsWith('sealring_codec_problem{') && number === 1)
        .map(([name]) => /sealring_problem_kind="([^"]*)"/.exec(name)?.[1] ?? '');
    expect(await told()).toEqual(['service-clock', 'contested', 'unreadable-key']);
    expect([...(await meter.samples()).keys()].join('\n')).not.toContain('canary');
    problems = [problem('clock')];
    expect(await told()).toEqual(['clock']);
    stop();
    expect(await told()).toEqual([]);
  });
});

describe('an outage of the KMS', () => {
  test('shows in calls, refreshes and the status', async () => {
    const codec = await start();
    bridge.observe(codec, { ringName: 'payments' });
    await codec.rotate();
    services.kmsFailing = 'denied';
    await codec.rotate().catch(() => undefined);
    services.storeDown = true;
    await codec.refresh().catch(() => undefined);
    const samples = await meter.samples();
    const failed = 'sealring_kms_call_duration_count{sealring_ring_name="payments",sealring_kms_provider="local"';
    expect(samples.get(`${failed},sealring_kms_operation="wrap",error_type="denied"}`)).toBeGreaterThanOrEqual(1);
    expect(
      samples.get(
        'sealring_ring_rotations_total{sealring_ring_name="payments",sealring_rotation_reason="requested",error_type="kms denied"}',
      ),
    ).toBe(1);
    expect(
      samples.get(
        'sealring_store_call_duration_count{sealring_ring_name="payments",sealring_store_kind="memory",sealring_store_operation="read",error_type="unavailable"}',
      ),
    ).toBeGreaterThanOrEqual(1);
    expect(
      samples.get('sealring_refresh_duration_count{sealring_ring_name="payments",error_type="store unavailable"}'),
    ).toBe(1);
    expect(samples.get('sealring_codec_status{sealring_ring_name="payments",sealring_status="degraded"}')).toBe(1);
    expect(
      samples.get('sealring_codec_transitions_total{sealring_ring_name="payments",sealring_status="degraded"}'),
    ).toBe(1);
  });
});

describe('labels', () => {
  test('have no key id, token, payload or key (F21)', async () => {
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

  test('have known values only, whatever is published (F23)', async () => {
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
    expect(
      await value(
        'sealring_boundary_refused_tokens_total{mcp_method_name="_OTHER",sealring_boundary_direction="_OTHER",sealring_reject_reason="_OTHER"}',
      ),
    ).toBe(1_000);
    const stale = [...(await meter.samples())].filter(([name]) => name.startsWith('sealring_codec_stale_tokens_total'));
    // Sixty-three beside `payments` by their names, and the rest as one.
    expect(stale.filter(([, count]) => count > 0)).toHaveLength(64);
    const counts = [...(await meter.samples()).keys()].filter((name) => name.includes('_duration_count'));
    // Sixteen providers by their names, and the rest as one.
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

  test('a codec that is closed, or no longer observed, reports zeros, and the others continue', async () => {
    // The SDK goes on exporting what it was told last: a closed codec must not look well for ever.
    const ready = async (ring: string): Promise<number | undefined> =>
      value(`sealring_codec_ready{sealring_ring_name="${ring}"}`);
    const one = await start();
    const other = await start();
    bridge.observe(one, { ringName: 'one' });
    const stop = bridge.observe(other, { ringName: 'other' });
    expect([await ready('one'), await ready('other')]).toEqual([1, 1]);
    await one.close();
    expect([await ready('one'), await ready('other')]).toEqual([0, 1]);
    expect(await value('sealring_codec_status{sealring_ring_name="one",sealring_status="ok"}')).toBe(0);
    expect(await value('sealring_ring_key_count{sealring_ring_name="one",sealring_key_state="active"}')).toBe(0);
    stop();
    expect(await ready('other')).toBe(0);
    // The name is free again, and a late second stop of the old one does nothing to the new one.
    bridge.observe(other, { ringName: 'other' });
    stop();
    expect(await ready('other')).toBe(1);
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

describe('the options of the bridge', () => {
  test('that are unknown or invalid are rejected by name', async () => {
    const wrong = (options: object): unknown => createOpenTelemetryBridge(options);
    expect(() => wrong({ meter: 1 })).toThrow(/unknown option "meter"/);
    expect(() => wrong({ meterProvider: {} })).toThrow(TypeError);
    expect(() => wrong({ tracerProvider: 7 })).toThrow(/tracerProvider must be/);
    const codec = await start();
    expect(() => bridge.observe({} as KmsCodec)).toThrow(/codec must be/);
    expect(() => bridge.observe(codec, { name: 'x' } as object)).toThrow(/unknown option "name"/);
    expect(() => bridge.observe(codec, { ringName: 'a b' })).toThrow(RangeError);
    expect(() => bridge.observe(codec, { clock: {} } as object)).toThrow(/clock must be/);
    bridge.observe(codec);
    expect(() => bridge.observe(codec)).toThrow(/"default" is already observed/);
    for (let i = 1; i < 64; i++) bridge.observe(codec, { ringName: `ring-${i}` });
    expect(() => bridge.observe(codec, { ringName: 'one-too-many' })).toThrow(/at most 64/);
  });
});
