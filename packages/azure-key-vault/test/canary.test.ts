import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { leaksIn as leaksOf, rejectionOf } from '../../../test/support/leaks.ts';
import { entry, useVault } from './vault-setup.ts';

const setup = useVault();
const context = { 'sealring:ring': 'test' };
// High bytes only: nothing printable by chance, and hex, base64 and numbers that appear nowhere else.
const CANARY = Uint8Array.from({ length: 64 }, (_, i) => 0xff - ((i * 37) % 64));

const leaksIn = (value: unknown): string[] => leaksOf(value, CANARY);

const CALLS: readonly [string, (keyWrapper: KeyWrapper, made: WrappedKey) => Promise<unknown>][] = [
  ['wrap', (keyWrapper) => keyWrapper.wrap(CANARY, { context })],
  ['unwrap', (keyWrapper, made) => keyWrapper.unwrap(made, { context })],
  ['sign', async (keyWrapper) => keyWrapper.sign?.(entry)],
];

/** A fault, and the calls that it does not affect. */
const FAULTS: readonly [fault: string, spoil: () => void, unharmed?: readonly string[]][] = [
  ['400', () => setup().vault.fail({ status: 400, code: 'BadParameter' })],
  ['401', () => setup().vault.fail({ status: 401, code: 'Unauthorized' })],
  ['403', () => setup().vault.deny()],
  ['403 with an empty body', () => setup().vault.fail({ status: 403, body: '' })],
  ['404', () => setup().vault.fail({ status: 404, code: 'KeyNotFound' })],
  ['409', () => setup().vault.fail({ status: 409, code: 'Conflict' })],
  ['429', () => setup().vault.throttle()],
  ['500', () => setup().vault.fail({ status: 500, code: 'InternalServerError' })],
  ['503 with HTML', () => setup().vault.fail({ status: 503, body: '<html>canary</html>' })],
  ['an error that holds the key in every field', () => setup().vault.fail(leakyRefusal())],
  // On the live service a disabled key still wraps.
  ['a disabled key', () => [setup().rsa, setup().signing].forEach((key) => key.set({ enabled: false })), ['wrap']],
  ['a connection that is cut', () => setup().vault.reset()],
  ['no answer', () => setup().vault.hang()],
  ['an answer that is cut short', () => setup().vault.spoilText((text) => text.slice(0, -1))],
  ['an answer that is not JSON', () => setup().vault.spoilText((text) => `x${text}`)],
  ['an answer for another key', () => setup().vault.spoilKid(() => Buffer.from(CANARY).toString('hex'))],
  // The ring checks a wrap by unwrapping it again.
  ['a value of 63 bytes', () => setup().vault.spoilValue((value) => value.subarray(1)), ['wrap']],
  [
    'a value of 65 bytes',
    () => setup().vault.spoilValue((value) => Buffer.concat([value, CANARY.subarray(0, 1)])),
    ['wrap'],
  ],
  ['a value as a list of numbers', () => setup().vault.spoilAnswer((answer) => ({ ...answer, value: [...CANARY] }))],
  ['an empty body', () => setup().vault.spoilText(() => '')],
];

function leakyRefusal(): { status: number; code: string; innerCode: string; message: string } {
  const text = Buffer.from(CANARY).toString('base64url');
  return { status: 418, code: text, innerCode: text, message: text };
}

async function setUp(): Promise<{ keyWrapper: KeyWrapper; made: WrappedKey }> {
  const { vault, rsa, signer } = setup();
  const keyWrapper = signer({ keyId: vault.idOf(rsa, rsa.current), maxAttempts: 2, callTimeoutSeconds: 0.5 });
  return { keyWrapper, made: await keyWrapper.wrap(CANARY, { context }) };
}

describe('data keys in errors of the SDK (F33)', () => {
  test('the SDK’s own errors contain the data key, in the request body or in the message', async () => {
    const { vault, rsa, clients } = setup();
    const properties = { vaultUrl: vault.url, name: rsa.name };
    const client = clients.cryptography({ id: vault.idOf(rsa, rsa.current), name: rsa.name, properties });
    const call = { abortSignal: new AbortController().signal, onResponse: () => undefined };
    const { result } = Object(await client.wrapKey('RSA-OAEP-256', CANARY, call));
    vault.throttle({ times: 1 });
    expect(leaksIn(await rejectionOf(client.wrapKey('RSA-OAEP-256', CANARY, call)))).not.toEqual([]);
    vault.spoilText((text) => text.slice(0, -1));
    const error = Object(await rejectionOf(client.unwrapKey('RSA-OAEP-256', result, call)));
    expect(leaksIn(new Error(error.message))).not.toEqual([]);
  });

  test.each(
    FAULTS.flatMap(([fault, spoil, unharmed = []]) =>
      CALLS.filter(([call]) => !unharmed.includes(call)).map(([call, run]) => ({ fault, spoil, call, run })),
    ),
  )('no error of $call contains the data key after $fault', async ({ spoil, run }) => {
    const { keyWrapper, made } = await setUp();
    spoil();
    const error = await rejectionOf(run(keyWrapper, made));
    expect(error).toMatchObject({ name: 'KeyWrapperError' });
    expect(error).not.toHaveProperty('cause');
    expect(leaksIn(error)).toEqual([]);
    expect(leaksIn(keyWrapper)).toEqual([]);
  });

  test('an error from the credential is dropped like one from the vault, because it could contain a secret', async () => {
    const { clients, wrapper } = setup();
    const text = Buffer.from(CANARY).toString('hex');
    const failing = Object.assign(new Error(text, { cause: text }), {
      name: 'AuthenticationError',
      errorResponse: text,
    });
    const keyWrapper = wrapper({
      clients: { ...clients, keys: () => ({ getKey: () => Promise.reject(failing) }) },
      maxAttempts: 1,
    });
    const error = await rejectionOf(keyWrapper.wrap(CANARY, { context }));
    expect(error).toMatchObject({ kind: 'unavailable', summary: { code: 'AuthenticationError' } });
    expect(leaksIn(error)).toEqual([]);
  });

  test('no error repeats a wrong argument', async () => {
    const { keyWrapper, made } = await setUp();
    const text = Buffer.from(CANARY).toString('hex');
    for (const call of [
      keyWrapper.wrap(Object(text), { context }),
      keyWrapper.wrap(CANARY.subarray(1), { context }),
      keyWrapper.wrap(CANARY, { context: JSON.parse(JSON.stringify(text)) }),
      keyWrapper.unwrap({ ...made, provider: text }, { context }),
      keyWrapper.unwrap({ ...made, keyId: text }, { context }),
      Promise.resolve(keyWrapper.sign?.(Object(text))),
    ]) {
      const error = await rejectionOf(call);
      expect(error).toBeInstanceOf(Error);
      expect(leaksIn(error)).toEqual([]);
    }
  });
});
