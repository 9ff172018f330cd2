import { expect, test, vi } from 'vitest';
import { RequestStateSecurity } from '../../src/index.ts';
import {
  createMcpdRequestStateCodec,
  createMcpdRequestStateSecurity,
  generateEphemeralKey,
} from '../../src/mcpd/index.ts';

const alice = { subject: 'alice' };

test('createMcpdRequestStateCodec rejects an empty key, and names the option that allows it', () => {
  for (const key of ['', new Uint8Array(0)]) {
    for (const make of [createMcpdRequestStateCodec, createMcpdRequestStateSecurity]) {
      expect(() => make({ key })).toThrow(RangeError);
      expect(() => make({ key })).toThrow(/key is empty.*allowEphemeral/);
      expect(() => make({ key, allowEphemeral: false })).toThrow(/allowEphemeral/);
    }
  }
  expect(() => createMcpdRequestStateCodec({ key: 'short', allowEphemeral: true })).toThrow('at least 32 bytes');
  const wrong = { allowEphemeral: 'yes' };
  expect(() => Reflect.apply(createMcpdRequestStateCodec, undefined, [wrong])).toThrow(TypeError);
});

test('with allowEphemeral, createMcpdRequestStateCodec replaces an empty key and emits one warning', async () => {
  const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  // Load the module again, as in a process that has not warned yet.
  vi.resetModules();
  const fresh = await import('../../src/mcpd/request-state-codec.ts');
  const [states, other] = ['', new Uint8Array(0)].map((key) =>
    fresh.createMcpdRequestStateCodec({ key, allowEphemeral: true, mode: 'encrypted' }),
  );
  const token = states?.encode('state', alice) ?? '';
  expect([states, other].map((each) => each?.decode(token, alice))).toEqual(['state', null]);
  expect(emitWarning.mock.calls.map(([, about]) => about)).toEqual([
    { type: 'SealringWarning', code: 'SEALRING_EPHEMERAL' },
  ]);
  emitWarning.mockRestore();
  expect(createMcpdRequestStateSecurity({ key: '', allowEphemeral: true })).toBeInstanceOf(RequestStateSecurity);
});

test('with allowEphemeral, createMcpdRequestStateCodec still uses a key that is not empty', () => {
  const key = 'k'.repeat(32);
  const [one, other] = [
    createMcpdRequestStateCodec({ key, allowEphemeral: true }),
    createMcpdRequestStateCodec({ key }),
  ];
  expect(other.decode(one.encode('state', alice), alice)).toBe('state');
});

test('generateEphemeralKey returns 32 random bytes that several codecs can share', () => {
  const key = generateEphemeralKey();
  expect(key).toHaveLength(32);
  expect(generateEphemeralKey()).not.toEqual(key);
  const [one, other] = [createMcpdRequestStateCodec({ key }), createMcpdRequestStateCodec({ key })];
  expect(other.decode(one.encode('state', alice), alice)).toBe('state');
});
