import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { azureKeyVaultKeyWrapper } from '../src/index.ts';

const CANARY = 'canary-of-a-vendor';
const fail = (): never => {
  throw Object.assign(new Error(CANARY), { request: { body: CANARY } });
};
const wrapper = azureKeyVaultKeyWrapper({
  keyId: 'https://payments.vault.azure.net/keys/ring/0123456789abcdef0123456789abcdef',
  algorithm: 'A256KW',
  clients: { keys: fail, cryptography: fail },
  maxAttempts: 1,
});
const dataKey = Uint8Array.from({ length: 64 }, (_, i) => i);

test('no error contains anything that a client factory throws (F33)', async () => {
  const wrapped = { provider: 'azure-key-vault', keyId: wrapper.keyId, wrapped: new Uint8Array(40) };
  for (const call of [wrapper.wrap(dataKey, { context: {} }), wrapper.unwrap(wrapped, { context: {} })]) {
    const error: unknown = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(inspect(error, { showHidden: true, depth: 10 })).not.toContain(CANARY);
  }
});
