import { channel } from 'node:diagnostics_channel';
import { createNoopMeter, type MeterProvider } from '@opentelemetry/api';
import type { KmsCodec } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
import { createOpenTelemetryBridge, type OpenTelemetryBridge } from '../src/index.ts';

const meterProvider: MeterProvider = { getMeter: () => createNoopMeter() };
const codec: KmsCodec = Object({ health: () => undefined });
let bridge: OpenTelemetryBridge | undefined;
afterEach(() => bridge?.dispose());

/** Creates a bridge as a caller without types could. */
function create(options: unknown = { meterProvider, tracerProvider: null }): OpenTelemetryBridge {
  bridge = createOpenTelemetryBridge(Object(options));
  return bridge;
}

describe('the options of the bridge', () => {
  test.each([
    ['an unknown option', { meter: 1 }, /unknown option "meter"/],
    ['a meterProvider without getMeter', { meterProvider: {} }, /meterProvider must be a MeterProvider/],
    ['a meterProvider of null', { meterProvider: null }, /meterProvider must be/],
    ['a tracerProvider without getTracer', { tracerProvider: {} }, /tracerProvider must be a TracerProvider or null/],
    ['a tracerProvider that is a number', { tracerProvider: 7 }, /tracerProvider must be/],
  ])('%s causes a TypeError that names the option', (_, options, message) => {
    expect(() => create(options)).toThrow(TypeError);
    expect(() => create(options)).toThrow(/^createOpenTelemetryBridge: /);
    expect(() => create(options)).toThrow(message);
    expect(channel('sealring:refresh').hasSubscribers).toBe(false);
  });

  test('without options the global providers are used', () => {
    expect(create(Object.create(null))).toBeDefined();
    expect(channel('sealring:refresh').hasSubscribers).toBe(true);
  });

  test.each([
    ['a codec without health', {}, {}, /codec must be a KmsCodec/],
    ['an unknown option', codec, { name: 'x' }, /unknown option "name"/],
    ['a clock without wallMs', codec, { clock: {} }, /clock must be a Clock/],
    ['a ringName with a space', codec, { ringName: 'a b' }, /ringName/],
    ['a name that is observed', codec, {}, /"default" is already being observed/],
  ])('observe() refuses %s, with a message that names the problem', (_, given, options, message) => {
    create().observe(codec);
    expect(() => bridge?.observe(Object(given), Object(options))).toThrow(message);
    expect(() => bridge?.observe(Object(given), Object(options))).toThrow(/^observe: /);
  });

  test('at most 64 codecs are observed, and stopping one frees its place and its name', () => {
    const made = create();
    const stop = made.observe(codec);
    for (let i = 1; i < 64; i++) made.observe(codec, { ringName: `ring-${i}` });
    expect(() => made.observe(codec, { ringName: 'one-too-many' })).toThrow(/at most 64/);
    stop();
    made.observe(codec);
    expect(() => made.observe(codec, { ringName: 'one-too-many' })).toThrow(RangeError);
  });
});

test.each([undefined, null, 'text', 7])(
  'a message that is not an event, %j, is skipped, and later events are counted',
  (message) => {
    const added: number[] = [];
    const meter = Object.assign(Object.create(createNoopMeter()), {
      createCounter: () => ({ add: (value: number) => void added.push(value) }),
    });
    create({ meterProvider: { getMeter: () => meter }, tracerProvider: null });
    added.length = 0;
    channel('sealring:principal-without-subject').publish(message);
    expect(added).toEqual([]);
    channel('sealring:principal-without-subject').publish({});
    expect(added).toEqual([1]);
  },
);
