import { DecryptCommand, EncryptCommand, GenerateDataKeyCommand } from '@aws-sdk/client-kms';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { spellingsOf } from '../../../test/support/leaks.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const OTHER = '99999999-12ab-34cd-56ef-1234567890ab';
const EncryptionContext = { ring: 'a' };
const Plaintext = Uint8Array.from({ length: 32 }, (_, i) => i);

function live(): { readonly abortSignal: AbortSignal } {
  return { abortSignal: new AbortController().signal };
}

function bytesIn(answer: unknown): { CiphertextBlob: Uint8Array; Plaintext?: Uint8Array } {
  const { CiphertextBlob, Plaintext: key } = Object(answer);
  if (!(CiphertextBlob instanceof Uint8Array)) throw new Error('no CiphertextBlob');
  return { CiphertextBlob, ...(key instanceof Uint8Array && { Plaintext: key }) };
}

describe('behaviour of the fake KMS', () => {
  test('Decrypt accepts the output of Encrypt and GenerateDataKey, but only with the same key and context', async () => {
    const kms = new FakeKms();
    const KeyId = kms.createKey(ID);
    kms.createKey(OTHER);
    const made = [
      bytesIn(await kms.send(new EncryptCommand({ KeyId, Plaintext, EncryptionContext }), live())),
      bytesIn(await kms.send(new GenerateDataKeyCommand({ KeyId, EncryptionContext }), live())),
    ];
    for (const { CiphertextBlob, Plaintext: key = Buffer.from(Plaintext) } of made) {
      const opened = await kms.send(new DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext }), live());
      expect(opened).toEqual({ KeyId, Plaintext: key });
      const refused = [
        [{ KeyId, CiphertextBlob, EncryptionContext: { ring: 'b' } }, 'InvalidCiphertextException'],
        [{ KeyId: OTHER, CiphertextBlob, EncryptionContext }, 'IncorrectKeyException'],
        [{ KeyId: 'alias/none', CiphertextBlob, EncryptionContext }, 'NotFoundException'],
        [{ KeyId, CiphertextBlob: CiphertextBlob.subarray(0, 50), EncryptionContext }, 'InvalidCiphertextException'],
      ] as const;
      for (const [input, name] of refused) {
        await expect(kms.send(new DecryptCommand(input), live())).rejects.toMatchObject({ name });
      }
    }
  });

  test('the faults of the fake KMS take effect in order, and heal() removes them', async () => {
    const kms = new FakeKms();
    const KeyId = kms.createKey(ID);
    const send = (): Promise<unknown> => kms.send(new GenerateDataKeyCommand({ KeyId }), live());
    kms.throttleNext(2);
    await expect(send()).rejects.toMatchObject({ name: 'ThrottlingException' });
    await expect(send()).rejects.toMatchObject({ name: 'ThrottlingException' });
    await expect(send()).resolves.toMatchObject({ KeyId });
    kms.disable();
    await expect(send()).rejects.toMatchObject({ name: 'DisabledException' });
    kms.deny();
    await expect(send()).rejects.toMatchObject({ name: 'AccessDeniedException' });
    kms.heal();
    kms.spoil(() => ({}));
    await expect(send()).resolves.toEqual({});
    kms.heal();
    await expect(send()).resolves.toMatchObject({ KeyId });
    expect(kms.requests).toHaveLength(7);
  });

  test('a call that hangs ends on an abort or, if the fake ignores aborts, when the fake answers late', async () => {
    const kms = new FakeKms();
    const KeyId = kms.createKey(ID);
    const controller = new AbortController();
    const send = (): Promise<unknown> =>
      kms.send(new GenerateDataKeyCommand({ KeyId }), { abortSignal: controller.signal });
    kms.hang('ignoring');
    const ignoring = send();
    kms.hang('heeding');
    const heeding = send();
    controller.abort();
    await expect(heeding).rejects.toMatchObject({ name: 'AbortError' });
    kms.answerLate();
    await expect(ignoring).resolves.toMatchObject({ KeyId });
  });

  test('the errors of the fake KMS contain the canary in every encoding that the search knows', async () => {
    const canary = Uint8Array.from({ length: 32 }, (_, i) => 255 - i);
    const kms = new FakeKms({ canary });
    kms.deny();
    const error: unknown = await kms
      .send(new GenerateDataKeyCommand({ KeyId: ID }), live())
      .catch((thrown: unknown) => thrown);
    for (const spelling of spellingsOf(canary)) expect(String(error)).toContain(spelling);
  });

  test('replicas of a multi-Region key share the key material but have different ARNs', async () => {
    const id = `mrk-${'0f'.repeat(16)}`;
    const ireland = new FakeKms({ region: 'eu-west-1' });
    const frankfurt = new FakeKms({ region: 'eu-central-1', replicaOf: ireland });
    ireland.createKey(id);
    const { CiphertextBlob } = bytesIn(await ireland.send(new EncryptCommand({ KeyId: id, Plaintext }), live()));
    const opened = await frankfurt.send(new DecryptCommand({ KeyId: id, CiphertextBlob }), live());
    expect(opened).toEqual({ KeyId: frankfurt.arn(id), Plaintext: Buffer.from(Plaintext) });
    expect(frankfurt.arn(id)).not.toBe(ireland.arn(id));
  });
});
