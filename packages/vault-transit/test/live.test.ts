import { createKmsCodec, memoryRing } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { vaultTransitKeyWrapper } from '../src/index.ts';
import { context, sampleKey } from './fixture.ts';

const NAMES = ['SEALRING_LIVE_VAULT_ADDR', 'SEALRING_LIVE_VAULT_TOKEN', 'SEALRING_LIVE_VAULT_KEY'] as const;

interface Live {
  readonly address: string;
  readonly token: string;
  readonly keyName: string;
}

/** What a live run needs; undefined where none is asked for. A part of it is no reason to leave it out. */
function liveOptions(env: NodeJS.ProcessEnv): Live | undefined {
  const [address, token, keyName] = NAMES.map((name) => env[name]);
  if (address === undefined && token === undefined && keyName === undefined) return undefined;
  if (address === undefined || token === undefined || keyName === undefined) {
    throw new Error(`a live run needs ${NAMES.join(', ')}`);
  }
  return { address, token, keyName };
}

test('a live run has an address, a token and a key, or is an error, or not asked for', () => {
  const [ADDR, TOKEN, KEY] = NAMES;
  expect(liveOptions({})).toBeUndefined();
  const whole = { [ADDR]: 'a', [TOKEN]: 't', [KEY]: 'k' };
  expect(liveOptions(whole)).toEqual({ address: 'a', token: 't', keyName: 'k' });
  for (const name of NAMES) expect(() => liveOptions({ ...whole, [name]: undefined })).toThrow('needs');
});

function liveLaws(options: Live): void {
  describe('live: a Vault or OpenBao of yours, with a member’s policy', () => {
    const keyWrapper = vaultTransitKeyWrapper(options);

    test('contract 1: what was wrapped comes back', async () => {
      const made = await keyWrapper.wrap(sampleKey(), { context });
      expect(made.keyId).toMatch(new RegExp(`^transit/keys/${options.keyName}:v[0-9]+$`));
      expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    });

    test('contract 2, F25: another context, or a changed ciphertext, is corrupt', async () => {
      const made = await keyWrapper.wrap(sampleKey(), { context });
      for (const other of [{}, { ...context, more: '' }]) {
        await expect(keyWrapper.unwrap(made, { context: other })).rejects.toMatchObject({ kind: 'corrupt' });
      }
      const wrapped = new Uint8Array(made.wrapped);
      wrapped[40] = made.wrapped[40] === 65 ? 66 : 65;
      await expect(keyWrapper.unwrap({ ...made, wrapped }, { context })).rejects.toMatchObject({
        kind: 'corrupt',
        summary: { status: 400 },
      });
    });

    test('contract 5: an aborted signal ends a call', async () => {
      const controller = new AbortController();
      const call = keyWrapper.wrap(sampleKey(), { context, signal: controller.signal });
      controller.abort();
      await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    });

    test('a codec founds a ring with it, and another opens what the first sealed', async () => {
      const ring = memoryRing();
      await using first = await createKmsCodec({ keyWrapper, ring });
      await using second = await createKmsCodec({ keyWrapper, ring });
      const payload = new TextEncoder().encode('state');
      expect(second.unseal(first.seal(payload))).toEqual(payload);
    });
  });
}

// Asked for, it runs: there is no skip, so whatever keeps it from the service makes it red.
const live = liveOptions(process.env);
if (live !== undefined) liveLaws(live);
