import { channel } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Attributes, context, INVALID_SPAN_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { hashedKeyId } from '@sealring/core';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { createOpenTelemetryBridge, type OpenTelemetryBridge } from '../src/index.ts';

/* The bridge's calls to the interfaces of OpenTelemetry, without an SDK. */

interface Sample {
  readonly name: string;
  readonly value: number;
  readonly attributes: Attributes;
}

const bridges: OpenTelemetryBridge[] = [];
afterEach(() => {
  for (const bridge of bridges.splice(0)) bridge.dispose();
});

function record() {
  const instruments: Record<string, unknown>[] = [];
  const samples: Sample[] = [];
  const spans: Record<string, unknown>[] = [];
  const make = (instrument: string) => (name: string, options: object) => {
    instruments.push({ name, instrument, ...options });
    const take = (value: number, attributes: Attributes): void => void samples.push({ name, value, attributes });
    return { add: take, record: take, name };
  };
  let collect: (result: object) => void = () => undefined;
  const meter = {
    createCounter: make('counter'),
    createHistogram: make('histogram'),
    createObservableGauge: make('gauge'),
    createObservableUpDownCounter: make('up-down counter'),
    addBatchObservableCallback: (callback: typeof collect) => (collect = callback),
    removeBatchObservableCallback: () => undefined,
  };
  const startSpan = (name: string, { kind, attributes }: { kind: SpanKind; attributes: Attributes }) => {
    const span: Record<string, unknown> = { name, kind, attributes };
    spans.push(span);
    return { setStatus: (status: object) => (span['status'] = status), end: () => undefined };
  };
  const providers = { meterProvider: { getMeter: () => meter }, tracerProvider: { getTracer: () => ({ startSpan }) } };
  const bridge: OpenTelemetryBridge = Reflect.apply(createOpenTelemetryBridge, undefined, [providers]);
  bridges.push(bridge);
  const observe = ({ name }: { name: string }, value: number, attributes: Attributes): void =>
    void samples.push({ name, value, attributes });
  return { bridge, instruments, samples, spans, collect: () => collect({ observe }) };
}

const KEY = hashedKeyId('key');
const own = { 'sealring.ring.name': 'payments' };
const rotation = { ...own, 'sealring.rotation.reason': 'scheduled' };
const kmsCall = { ...own, 'sealring.kms.provider': 'local', 'sealring.kms.operation': 'wrap' };
const storeCall = { ...own, 'sealring.store.kind': 'memory', 'sealring.store.operation': 'read' };
const boundary = { 'mcp.method.name': 'tools/call' };

/** An event of each channel, its metric, and the attributes. */
const EVENTS: readonly (readonly [channel: string, event: object, metric: string, attributes: Attributes])[] = [
  ['refresh', { ok: true, seconds: 2 }, 'refresh.duration', own],
  [
    'refresh',
    { source: 'store', kind: 'conflict', seconds: 2 },
    'refresh.duration',
    { ...own, 'error.type': 'store conflict' },
  ],
  ['rotation', { reason: 'scheduled', keyId: KEY }, 'ring.rotations', rotation],
  [
    'rotation-failed',
    { reason: 'scheduled', source: 'kms', kind: 'denied' },
    'ring.rotations',
    { ...rotation, 'error.type': 'kms denied' },
  ],
  ['kms-call', { provider: 'local', operation: 'wrap', ok: true, seconds: 2 }, 'kms.call.duration', kmsCall],
  [
    'kms-call',
    { provider: 'local', operation: 'wrap', ok: false, kind: 'denied', seconds: 2 },
    'kms.call.duration',
    { ...kmsCall, 'error.type': 'denied' },
  ],
  ['store-call', { store: 'memory', operation: 'read', ok: true, seconds: 2 }, 'store.call.duration', storeCall],
  [
    'store-call',
    { store: 'memory', operation: 'read', ok: false, kind: 'absent', seconds: 2 },
    'store.call.duration',
    { ...storeCall, 'error.type': 'absent' },
  ],
  [
    'key-version',
    { provider: 'local', version: 'x' },
    'kms.new_versions',
    { ...own, 'sealring.kms.provider': 'local' },
  ],
  ['conflict', {}, 'ring.conflicts', own],
  ['healed', {}, 'ring.heals', own],
  ['stale', { keyId: KEY }, 'codec.stale_tokens', own],
  ['rejected', { reason: 'malformed' }, 'codec.rejected_tokens', { ...own, 'sealring.reject.reason': 'malformed' }],
  ['state', { status: 'ok' }, 'codec.transitions', { ...own, 'sealring.status': 'ok' }],
  ['boundary-sealed', { method: 'tools/call' }, 'boundary.sealed_tokens', boundary],
  ['boundary-unsealed', { method: 'tools/call' }, 'boundary.unsealed_tokens', boundary],
  [
    'boundary-refused',
    { method: 'tools/call', direction: 'inbound', reason: 'expired' },
    'boundary.refused_tokens',
    { ...boundary, 'sealring.boundary.direction': 'inbound', 'sealring.reject.reason': 'expired' },
  ],
  ['principal-without-subject', { client: 'x' }, 'boundary.subjectless_clients', {}],
];

const publish = (name: string, event: object): void =>
  channel(`sealring:${name}`).publish({ ringName: 'payments', ...event });

test.each(EVENTS)('an event of %s, %j, is added to sealring.%s', (name, event, metric, attributes) => {
  const { samples } = record();
  publish(name, event);
  const value = 'seconds' in event ? 2 : 1;
  expect(samples.filter((sample) => sample.value > 0)).toEqual([{ name: `sealring.${metric}`, value, attributes }]);
});

test('spans are created only for refreshes, rotations and calls, and failed ones have the status ERROR', () => {
  const { spans } = record();
  for (const [name, event] of EVENTS) publish(name, event);
  // The status has no message.
  const failed = { status: { code: SpanStatusCode.ERROR } };
  const internal = (name: string) => ({ name: `sealring.${name}`, kind: SpanKind.INTERNAL });
  const client = (name: string) => ({ name: `sealring.${name}`, kind: SpanKind.CLIENT });
  expect(spans).toEqual([
    { ...internal('refresh'), attributes: own },
    { ...internal('refresh'), ...failed, attributes: { ...own, 'error.type': 'store conflict' } },
    { ...internal('rotation'), attributes: { ...rotation, 'sealring.key.hash': KEY } },
    { ...internal('rotation'), ...failed, attributes: { ...rotation, 'error.type': 'kms denied' } },
    { ...client('kms.wrap'), attributes: kmsCall },
    { ...client('kms.wrap'), ...failed, attributes: { ...kmsCall, 'error.type': 'denied' } },
    { ...client('store.read'), attributes: storeCall },
    { ...client('store.read'), ...failed, attributes: { ...storeCall, 'error.type': 'absent' } },
  ]);
});

test.each(['x', `${KEY}x`, `x${KEY}`, [KEY], 7, null, undefined])(
  'a span shows a key id only if it is a hash, not if it is %j',
  (keyId) => {
    const { spans } = record();
    publish('rotation', { reason: 'scheduled', keyId });
    expect(spans.map(({ attributes }) => attributes)).toEqual([rotation]);
  },
);

test('token operations of a codec and the boundary add events to the active span, and create no span', () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => context.disable());
  const { spans } = record();
  const added: unknown[] = [];
  const active = Object.assign(trace.wrapSpanContext(INVALID_SPAN_CONTEXT), {
    addEvent: (...event: unknown[]) => void added.push(event),
  });
  const noted = EVENTS.filter(([name]) => ['stale', 'rejected', 'boundary'].includes(name.replace(/-.*/, '')));
  context.with(trace.setSpan(context.active(), active), () => {
    for (const [name, event] of [...noted, ...EVENTS.filter(([other]) => ['conflict', 'state'].includes(other))])
      publish(name, event);
  });
  expect(added).toEqual([
    ['sealring.stale', { ...own, 'sealring.key.hash': KEY }],
    ...noted.slice(1).map(([name, , , attributes]) => [`sealring.${name.replace('-', '.')}`, attributes]),
  ]);
  expect(noted).toHaveLength(5);
  expect(spans).toEqual([]);
});

test('the instruments, their units and attributes are as documented in the README, and each has a description', () => {
  const { bridge, instruments, samples, collect } = record();
  for (const [name, event] of EVENTS) publish(name, event);
  bridge.observe(Object({ health: () => health }), { ringName: 'payments' });
  collect();
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const documented = [...readme.matchAll(/^\| `(sealring\.[a-z_.]+)` \| ([a-z -]+), `(.+?)` \| (.*?) \|/gm)].map(
    ([, name, instrument, unit, attributes = '']) => ({
      name,
      instrument,
      unit,
      attributes: [...attributes.matchAll(/`(.+?)`/g)].map(([, attribute = '']) => attribute).toSorted(),
    }),
  );
  const reported = instruments.map(({ name, instrument, unit }) => {
    const mine = samples.filter((sample) => sample.name === name);
    return {
      name,
      instrument,
      unit,
      attributes: [...new Set(mine.flatMap(({ attributes }) => Object.keys(attributes)))].toSorted(),
    };
  });
  const byName = (a: { name?: unknown }, b: { name?: unknown }): number => (String(a.name) < String(b.name) ? -1 : 1);
  expect(reported.toSorted(byName)).toEqual(documented.toSorted(byName));
  for (const { description } of instruments) expect(description).toMatch(/^[A-Z1].{15}/);
  // OpenTelemetry's semantic conventions for `http.server.request.duration`.
  const bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
  for (const { advice } of instruments.filter(({ instrument }) => instrument === 'histogram')) {
    expect(advice).toEqual({ explicitBucketBoundaries: bounds });
  }
});

test('counters of the boundary start at 0, and counters of a ring start with its first event or codec', () => {
  const { bridge, samples } = record();
  const of = (metric: string, attributes: Attributes): Sample => ({ name: `sealring.${metric}`, value: 0, attributes });
  const methods = ['tools/call', 'prompts/get', 'resources/read'].map((method) => ({ 'mcp.method.name': method }));
  expect(samples.splice(0)).toEqual([
    ...methods.map((method) => of('boundary.sealed_tokens', method)),
    ...methods.map((method) => of('boundary.unsealed_tokens', method)),
    of('boundary.subjectless_clients', {}),
  ]);
  const started = (ring: object): Sample[] => [
    ...['scheduled', 'key-version', 'requested', 'initial', 'emergency', 'revocation'].map((reason) =>
      of('ring.rotations', { ...ring, 'sealring.rotation.reason': reason }),
    ),
    of('ring.conflicts', { ...ring }),
    of('ring.heals', { ...ring }),
    of('codec.stale_tokens', { ...ring }),
    ...['malformed', 'unknown key', 'authentication failed'].map((reason) =>
      of('codec.rejected_tokens', { ...ring, 'sealring.reject.reason': reason }),
    ),
  ];
  for (const status of ['ok', 'failing']) publish('state', { status });
  expect(samples.splice(0).filter(({ value }) => value === 0)).toEqual(started(own));
  bridge.observe(Object({ health: () => health }), { ringName: 'other' });
  expect(samples).toEqual(started({ 'sealring.ring.name': 'other' }));
});

const KMS = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'];
const STORE = ['unavailable', 'absent', 'denied', 'corrupt', 'too-large', 'read-only'];

const BOUNDARY_REASONS = [
  'non-string requestState',
  'malformed',
  'unknown key',
  'authentication failed',
  'seal unavailable',
  'codec error',
  'minted in the future',
  'expired',
  'request binding',
  'arguments too large',
  'audience',
  'principal binding error',
  'principal drift',
  'principal',
  'already used',
  'state too large',
  'unsealed requestState',
  'unverified requestState',
];

test.each([
  [
    'rotation',
    'reason',
    'sealring.rotation.reason',
    ['scheduled', 'key-version', 'requested', 'initial', 'emergency', 'revocation'],
  ],
  ['kms-call', 'operation', 'sealring.kms.operation', ['generate', 'wrap', 'unwrap', 'sign']],
  ['kms-call', 'kind', 'error.type', KMS],
  ['kms-call', 'provider', 'sealring.kms.provider', ['a', 'A.b_c-9', 'x'.repeat(40)]],
  ['store-call', 'operation', 'sealring.store.operation', ['read', 'write']],
  ['store-call', 'kind', 'error.type', [...STORE, 'conflict']],
  ['rejected', 'reason', 'sealring.reject.reason', ['malformed', 'unknown key', 'authentication failed']],
  ['state', 'status', 'sealring.status', ['ok', 'degraded', 'failing']],
  ['boundary-sealed', 'method', 'mcp.method.name', ['tools/call', 'prompts/get', 'resources/read', 'unknown']],
  ['boundary-refused', 'direction', 'sealring.boundary.direction', ['inbound', 'outbound']],
  ['boundary-refused', 'reason', 'sealring.reject.reason', BOUNDARY_REASONS],
])('%s: the member %s sets %s to one of %j, or to _OTHER for any other value', (name, member, attribute, values) => {
  const { samples } = record();
  samples.length = 0;
  const wrong = ['', 'canary', 7, null, [values[0]], 'x'.repeat(41), `${values[0]}\n`, ` ${values[0]}`].slice(
    member === 'provider' ? 2 : 0,
  );
  for (const value of [...values, ...wrong]) publish(name, { [member]: value });
  const reported = samples.filter(
    ({ value, attributes }) => attribute in attributes && (value > 0 || name.endsWith('-call') || name === 'refresh'),
  );
  expect(reported.map(({ attributes }) => attributes[attribute])).toEqual([...values, ...wrong.map(() => '_OTHER')]);
});

const FAILURES = [
  ...KMS.map((kind) => ['kms', kind]),
  ...[...STORE, 'conflict'].map((kind) => ['store', kind]),
  ['internal', 'error'],
];
const OTHERS = [
  ['kms', 'conflict'],
  ['store', 'throttled'],
  ['internal', 'denied'],
  ['kms'],
  ['', 'denied'],
  [7, null],
];

test.each(['refresh', 'rotation-failed'])(
  '%s: source and kind set error.type to a value of lastError, or to _OTHER for any other combination',
  (name) => {
    const { samples } = record();
    samples.length = 0;
    for (const [source, kind] of [...FAILURES, ...OTHERS]) publish(name, { source, kind, seconds: 1 });
    const types = samples.flatMap(({ value, attributes }) => (value > 0 ? [attributes['error.type']] : []));
    expect(types).toEqual([...FAILURES.map((failure) => failure.join(' ')), ...OTHERS.map(() => '_OTHER')]);
  },
);

const NOW = Date.UTC(2026, 0, 1);
const health = {
  status: 'degraded',
  ready: true,
  canSeal: false,
  canUnseal: true,
  sealUntil: new Date(NOW + 5_000),
  lastKmsCheck: new Date(NOW - 3_000),
  lastRefresh: new Date(NOW - 4_000),
  sealingKey: 'key',
  keys: [
    { state: 'active', sealsUntil: new Date(NOW + 7_000) },
    { state: 'propagating', sealsUntil: new Date(NOW + 10_000) },
    { state: 'revoked', sealsUntil: new Date(NOW + 100_000) },
    { state: 'expired', sealsUntil: new Date(NOW + 200_000) },
  ],
  problems: [{ kind: 'clock' }, { kind: 'canary' }],
};
const PROBLEMS = [
  'clock',
  'service-clock',
  'contested',
  'foreign-ring',
  'unreadable-key',
  'no-sealing-key',
  'nearly-full',
];

/** Each gauge that is not 0 with its value, and the number of gauges. */
function gauges(samples: Sample[]): [Record<string, number>, number] {
  const named = samples.map(({ name, value, attributes: { 'sealring.ring.name': ring, ...rest } }) => [
    [ring, name.replace('sealring.', ''), ...Object.values(rest)].join(' '),
    value,
  ]);
  return [Object.fromEntries(named.filter(([, value]) => value !== 0)), samples.length];
}

test('a codec reports its health, and zeros once it is closed or no longer observed', () => {
  const { bridge, samples, collect } = record();
  samples.length = 0;
  const clock = { wallMs: () => NOW };
  let current: object | Error = health;
  const codec = Object({
    health: () => {
      if (current instanceof Error) throw current;
      return current;
    },
  });
  const stop = bridge.observe(codec, { ringName: 'r', clock });
  const collected = () => {
    samples.length = 0;
    collect();
    return gauges(samples);
  };
  const count = 3 + 5 + PROBLEMS.length + 8;
  expect(collected()).toEqual([
    {
      'r codec.status degraded': 1,
      'r codec.ready': 1,
      'r codec.can_unseal': 1,
      'r codec.seal.remaining': 5,
      'r codec.kms_check.age': 3,
      'r codec.refresh.age': 4,
      'r codec.problem clock': 1,
      'r ring.seal.remaining': 10,
      'r ring.sealing_key.fingerprint': Buffer.from(hashedKeyId('key'), 'base64url').readUIntBE(0, 6),
      ...Object.fromEntries(
        ['active', 'propagating', 'revoked', 'expired'].map((state) => [`r ring.key.count ${state}`, 1]),
      ),
    },
    count,
  ]);
  for (const kind of PROBLEMS) {
    current = {
      status: 'ok',
      problems: [{ kind }],
      keys: [],
      sealUntil: new Date(NOW - 1),
      lastRefresh: new Date(NOW + 1),
    };
    expect(collected()).toEqual([{ 'r codec.status ok': 1, [`r codec.problem ${kind}`]: 1 }, count]);
  }
  stop();
  const gone = [
    [{}, count],
    [{}, 0],
  ];
  expect([collected(), collected()]).toEqual(gone);
  bridge.observe(codec, { ringName: 'r', clock });
  // A late second stop of the old one does not affect the new one.
  stop();
  expect(collected()[0]).toHaveProperty(['r codec.status ok'], 1);
  current = Object.assign(new Error('closed'), { name: 'CodecClosedError' });
  expect([collected(), collected()]).toEqual(gone);
  bridge.observe(codec, { ringName: 'r', clock });
  current = new Error('not closed');
  expect(collected).toThrow('not closed');
});
