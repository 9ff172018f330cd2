import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  clientOf,
  clientOptions,
  crc32cBitwise,
  type FakeGcpKms,
  type RunningGcpKms,
  realClient,
  Status,
  startGcpKms,
} from '../support/gcp-kms/index.ts';

const PLAINTEXT = Buffer.from('a data key of thirty-two bytes!!');
const AAD = Buffer.from('{"ring":"test"}');

let server: RunningGcpKms;
let kms: FakeGcpKms;
let client: KeyManagementServiceClient;
let name = '';
let keys = 0;

beforeAll(async () => {
  server = await startGcpKms();
  ({ kms } = server);
  client = realClient(server);
});
beforeEach(() => {
  name = kms.createKey(`key-${++keys}`);
  kms.requests.length = 0;
});
afterEach(() => kms.heal());
afterAll(async () => {
  await client.close();
  await server.stop();
});

// One attempt, with its own status: the SDK's retries are not tested here.
function oneAttempt(timeout = 5_000): { timeout: number; retry: { retryCodes: number[] } } {
  return { timeout, retry: { retryCodes: [] } };
}

async function encrypt(change: object = {}, calls: Pick<KeyManagementServiceClient, 'encrypt'> = client) {
  const request = {
    name,
    plaintext: PLAINTEXT,
    plaintextCrc32c: { value: crc32cBitwise(PLAINTEXT) },
    additionalAuthenticatedData: AAD,
    additionalAuthenticatedDataCrc32c: { value: crc32cBitwise(AAD) },
    ...change,
  };
  const [answer] = await calls.encrypt(request, oneAttempt());
  return { ...answer, ciphertext: Buffer.from(answer.ciphertext ?? '') };
}

async function decrypt(
  ciphertext: Buffer,
  change: object = {},
  calls: Pick<KeyManagementServiceClient, 'decrypt'> = client,
) {
  const request = { name, ciphertext, additionalAuthenticatedData: AAD, ...change };
  const [answer] = await calls.decrypt(request, oneAttempt());
  return { ...answer, plaintext: Buffer.from(answer.plaintext ?? '') };
}

describe('a fake Cloud KMS, used by the vendor’s own client', () => {
  test('encrypts and decrypts, names the version, and verifies and sends checksums', async () => {
    const wrapped = await encrypt();
    expect(wrapped).toMatchObject({
      name: `${name}/cryptoKeyVersions/1`,
      ciphertextCrc32c: { value: String(crc32cBitwise(wrapped.ciphertext)) },
      verifiedPlaintextCrc32c: true,
      verifiedAdditionalAuthenticatedDataCrc32c: true,
      protectionLevel: 'SOFTWARE',
    });
    expect(wrapped.ciphertext.includes(PLAINTEXT.subarray(0, 8))).toBe(false);
    expect(await decrypt(wrapped.ciphertext)).toMatchObject({
      plaintext: PLAINTEXT,
      plaintextCrc32c: { value: String(crc32cBitwise(PLAINTEXT)) },
      usedPrimary: true,
    });
    expect(kms.requests.map(({ method, caller }) => ({ method, caller }))).toEqual([
      { method: 'encrypt', caller: '' },
      { method: 'decrypt', caller: '' },
    ]);
  });

  test('reports a missing checksum as not verified', async () => {
    expect(await encrypt({ plaintextCrc32c: null, additionalAuthenticatedDataCrc32c: null })).toMatchObject({
      verifiedPlaintextCrc32c: false,
      verifiedAdditionalAuthenticatedDataCrc32c: false,
    });
  });

  test.each(['plaintextCrc32c', 'additionalAuthenticatedDataCrc32c'])('refuses a wrong %s', async (field) => {
    await expect(encrypt({ [field]: { value: 7 } })).rejects.toMatchObject({ code: Status.INVALID_ARGUMENT });
    await encrypt();
  });

  test.each(['ciphertextCrc32c', 'additionalAuthenticatedDataCrc32c'])(
    'refuses a wrong %s in Decrypt',
    async (field) => {
      const { ciphertext } = await encrypt();
      await expect(decrypt(ciphertext, { [field]: { value: 7 } })).rejects.toMatchObject({
        code: Status.INVALID_ARGUMENT,
      });
    },
  );

  test('refuses different additional data, changed or truncated ciphertext, and ciphertext of another key', async () => {
    const { ciphertext } = await encrypt();
    const other = kms.createKey('another');
    const refused = { code: Status.INVALID_ARGUMENT };
    await expect(decrypt(ciphertext, { additionalAuthenticatedData: Buffer.from('x') })).rejects.toMatchObject(refused);
    await expect(decrypt(ciphertext, { name: other })).rejects.toMatchObject(refused);
    await expect(decrypt(ciphertext.subarray(0, -1))).rejects.toMatchObject(refused);
    await expect(decrypt(Buffer.alloc(0))).rejects.toMatchObject(refused);
    for (let i = 0; i < ciphertext.length; i += 7) {
      const changed = Buffer.from(ciphertext);
      changed[i] = (changed[i] ?? 0) ^ 1;
      await expect(decrypt(changed)).rejects.toMatchObject(refused);
    }
  });

  test('the fake Cloud KMS has only keys that were created, and rejects the name of a version in Decrypt', async () => {
    const { ciphertext } = await encrypt();
    await expect(encrypt({ name: `${name}x` })).rejects.toMatchObject({ code: Status.NOT_FOUND });
    await expect(decrypt(ciphertext, { name: `${name}x` })).rejects.toMatchObject({ code: Status.NOT_FOUND });
    await expect(decrypt(ciphertext, { name: `${name}/cryptoKeyVersions/1` })).rejects.toMatchObject({
      code: Status.INVALID_ARGUMENT,
    });
  });

  test('encrypts with the new version after a rotation, and decrypts with both', async () => {
    const old = await encrypt();
    expect(kms.rotate(name)).toBe(`${name}/cryptoKeyVersions/2`);
    const newer = await encrypt();
    expect(newer.name).toBe(`${name}/cryptoKeyVersions/2`);
    expect(await decrypt(old.ciphertext)).toMatchObject({ plaintext: PLAINTEXT, usedPrimary: false });
    expect(await decrypt(newer.ciphertext)).toMatchObject({ plaintext: PLAINTEXT, usedPrimary: true });
  });

  test('refuses a disabled version until it is enabled, with its state in the error details', async () => {
    const old = await encrypt();
    kms.rotate(name);
    kms.disable(old.name ?? '');
    const refused = {
      code: Status.FAILED_PRECONDITION,
      statusDetails: [{ violations: [{ type: 'KEY_DISABLED', subject: old.name }] }],
    };
    await expect(decrypt(old.ciphertext)).rejects.toMatchObject(refused);
    const newer = await encrypt();
    expect(await decrypt(newer.ciphertext)).toMatchObject({ plaintext: PLAINTEXT });
    kms.disable(name);
    await expect(encrypt()).rejects.toMatchObject({ code: Status.FAILED_PRECONDITION });
    kms.enable(name);
    expect(await decrypt(old.ciphertext)).toMatchObject({ plaintext: PLAINTEXT });
  });

  test('the fake Cloud KMS never decrypts again with a destroyed version', async () => {
    const { ciphertext } = await encrypt();
    kms.scheduleDestruction(name);
    await expect(decrypt(ciphertext)).rejects.toMatchObject({
      statusDetails: [{ violations: [{ type: 'KEY_DESTROY_SCHEDULED' }] }],
    });
    kms.destroy(name);
    expect(() => kms.enable(name)).toThrow('destroyed');
    await expect(decrypt(ciphertext)).rejects.toMatchObject({
      statusDetails: [{ violations: [{ type: 'KEY_DESTROYED' }] }],
    });
  });

  test('serves only callers with the permission once any permission is granted', async () => {
    const guarded = await startGcpKms();
    const anybody = realClient(guarded);
    try {
      const key = guarded.kms.createKey();
      guarded.kms.grant('member', [
        'cloudkms.cryptoKeyVersions.useToEncrypt',
        'cloudkms.cryptoKeyVersions.useToDecrypt',
      ]);
      guarded.kms.grant('reader', ['cloudkms.cryptoKeyVersions.useToDecrypt']);
      const [member, reader, stranger] = ['member', 'reader', 'stranger'].map((token) => clientOf(token, anybody));
      const { ciphertext } = await encrypt({ name: key }, member);
      expect(await decrypt(ciphertext, { name: key }, reader)).toMatchObject({ plaintext: PLAINTEXT });
      const denied = { code: Status.PERMISSION_DENIED, reason: 'IAM_PERMISSION_DENIED' };
      await expect(encrypt({ name: key }, reader)).rejects.toMatchObject(denied);
      await expect(decrypt(ciphertext, { name: key }, stranger)).rejects.toMatchObject(denied);
      await expect(encrypt({ name: key }, anybody)).rejects.toMatchObject({
        code: Status.UNAUTHENTICATED,
        reason: 'CREDENTIALS_MISSING',
      });
      expect(guarded.kms.requests.map(({ caller }) => caller)).toEqual(['member', 'reader', 'reader', 'stranger', '']);
    } finally {
      await anybody.close();
      await guarded.stop();
    }
  });

  test('fails as configured, and stops failing when it is healed', async () => {
    kms.throttleNext(1);
    await expect(encrypt()).rejects.toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
    await encrypt();
    for (const code of Object.values(Status)) {
      kms.failAlways({ code, details: 'as told', trailers: { 'x-debug': 'trailer' } });
      await expect(encrypt()).rejects.toMatchObject({ code, details: 'as told' });
    }
    kms.deny();
    await expect(encrypt()).rejects.toMatchObject({ code: Status.PERMISSION_DENIED });
    kms.heal();
    await encrypt();
  });

  test('corrupts answers', async () => {
    kms.spoil(() => ({}));
    expect(await encrypt()).toMatchObject({ name: '', ciphertext: Buffer.alloc(0), ciphertextCrc32c: null });
    kms.spoil((answer) => ({ ...answer, name: 'elsewhere' }));
    expect(await encrypt()).toMatchObject({ name: 'elsewhere', verifiedPlaintextCrc32c: true });
  });

  test('holds answers back until answerLate() is called', async () => {
    await encrypt();
    await expect(encrypt({ name: `${name}x` })).rejects.toMatchObject({ code: Status.NOT_FOUND });
    kms.hang();
    await expect(client.encrypt({ name, plaintext: PLAINTEXT }, oneAttempt(500))).rejects.toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    // The earlier calls were answered, even the calls that failed.
    await expect.poll(() => kms.cancelled).toBe(1);
    const late = encrypt();
    await expect.poll(() => kms.hanging).toBe(2);
    kms.answerLate();
    expect((await late).name).toBe(`${name}/cryptoKeyVersions/1`);
    expect(kms.hanging).toBe(0);
  });

  test('delays its answers', async () => {
    kms.delay(200);
    await expect(client.encrypt({ name, plaintext: PLAINTEXT }, oneAttempt(50))).rejects.toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    expect((await encrypt()).name).toBe(`${name}/cryptoKeyVersions/1`);
  });

  test('resets connections, and accepts new ones', async () => {
    await encrypt();
    const accepted = server.accepted;
    kms.hang();
    const cut = encrypt();
    await expect.poll(() => kms.hanging).toBe(1);
    server.resetConnections();
    await expect(cut).rejects.toMatchObject({ code: Status.UNAVAILABLE });
    kms.heal();
    await encrypt();
    expect(server.accepted).toBe(accepted + 1);
  });

  test('computes CRC32C checksums (RFC 3720, B.4)', () => {
    expect(crc32cBitwise(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32cBitwise(Buffer.from('123456789'))).toBe(0xe3069283);
  });

  test('serves other processes', async () => {
    const script = join(import.meta.dirname, '..', 'support', 'gcp-kms', 'serve.ts');
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    try {
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (text) => {
        printed += text;
      });
      await expect.poll(() => printed).toMatch(/^Running on http:.*\nKey .*\n$/);
      const [, host = '', port, key] = /on http:\/\/(.*):(\d+)\nKey (.*)\n/.exec(printed) ?? [];
      const far = new KeyManagementServiceClient(clientOptions({ host, port: Number(port) }));
      const [answer] = await far.encrypt({ name: key ?? '', plaintext: PLAINTEXT }, oneAttempt());
      expect(answer.name).toBe(`${key}/cryptoKeyVersions/1`);
      await far.close();
    } finally {
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
    }
  });
});
