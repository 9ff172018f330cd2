import { KMSClient } from '@aws-sdk/client-kms';
import { describe, expect, onTestFinished, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { type Answerer, type HttpStub, startHttpStub } from '../../../test/support/http-stub.ts';
import { awsKmsKeyWrapper } from '../src/index.ts';

/* Answers of AWS KMS that no emulator gives. */

const keyId = 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const wrapped = { provider: 'aws-kms', keyId, wrapped: new Uint8Array(100) };
const context = { 'sealring:ring': 'payments' };
const dataKey = Uint8Array.from({ length: 32 }, (_, i) => i);

async function stub(answer: Answerer): Promise<HttpStub> {
  const started = await startHttpStub(answer);
  onTestFinished(() => started.close());
  return started;
}

type Response = Parameters<Answerer>[1];

function send(response: Response, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1', ...headers }).end(JSON.stringify(body));
}

function wrapperAt({ endpoint }: HttpStub, maxAttempts: number) {
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
  const client = new KMSClient({ endpoint, region: 'eu-west-1', maxAttempts: 1, credentials });
  onTestFinished(() => client.destroy());
  return awsKmsKeyWrapper({ keyId, client, maxAttempts });
}

describe('KMSInvalidStateException', () => {
  test.each([
    ['of an external key store whose proxy is down', 'AWS KMS cannot communicate with your external key store proxy.'],
    ['of a custom key store that is disconnected', `${keyId} is unavailable.`],
  ])('a refusal %s is unavailable and retried, because it is not a decision about the key', async (_, message) => {
    const kms = await stub((__, response) => send(response, 400, { __type: 'KMSInvalidStateException', message }));
    await expect(wrapperAt(kms, 2).unwrap(wrapped, { context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { code: 'KMSInvalidStateException', attempts: 2, hint: expect.stringContaining('key store') },
    });
  });

  test('a refusal of a key that is pending deletion is disabled, and is not retried', async () => {
    const answer = { __type: 'KMSInvalidStateException', message: `${keyId} is pending deletion.` };
    const kms = await stub((_, response) => send(response, 400, answer));
    await expect(wrapperAt(kms, 2).unwrap(wrapped, { context })).rejects.toMatchObject({
      kind: 'disabled',
      summary: { code: 'KMSInvalidStateException', attempts: 1 },
    });
  });
});

describe('a clock that differs by ten minutes', () => {
  const offsetMs = 600_000;
  const serviceDate = () => new Date(Date.now() + offsetMs);
  const signedAt = (stamp: unknown): number =>
    Date.parse(String(stamp).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  const refused = (message: string) => ({ __type: 'InvalidSignatureException', message });

  test('a signature that KMS refuses because of the clock is retried with the time of KMS', async () => {
    const kms = await stub(({ headers }, response) => {
      const date = { date: serviceDate().toUTCString() };
      const isCurrent = Math.abs(signedAt(headers['x-amz-date']) - serviceDate().getTime()) < 300_000;
      const answer = { KeyId: keyId, Plaintext: Buffer.from(dataKey).toString('base64') };
      if (isCurrent) send(response, 200, answer, date);
      else send(response, 400, refused('Signature expired: 20261121T030000Z is now earlier than …'), date);
    });
    expect(await wrapperAt(kms, 2).unwrap(wrapped, { context })).toEqual(dataKey);
    expect(kms.requests).toHaveLength(2);
  });

  test('a signature that is refused because of the clock is unavailable, and the error names the clock', async () => {
    const kms = await stub((_, response) =>
      send(response, 400, refused('Signature not yet current: 20261121T030000Z')),
    );
    await expect(wrapperAt(kms, 1).unwrap(wrapped, { context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { code: 'InvalidSignatureException', hint: expect.stringContaining('clock') },
    });
  });

  test('a disabled key is disabled, although the SDK marks every error when the clock is wrong', async () => {
    const date = { date: serviceDate().toUTCString() };
    const kms = await stub((_, response) => send(response, 400, { __type: 'DisabledException' }, date));
    await expect(wrapperAt(kms, 1).unwrap(wrapped, { context })).rejects.toMatchObject({ kind: 'disabled' });
  });
});

test('a signature that is refused because of a wrong secret key is denied', async () => {
  const message = 'The request signature we calculated does not match the signature you provided.';
  const kms = await stub((_, response) => send(response, 400, { __type: 'InvalidSignatureException', message }));
  await expect(wrapperAt(kms, 2).unwrap(wrapped, { context })).rejects.toMatchObject({
    kind: 'denied',
    summary: { attempts: 1, hint: expect.stringContaining('credentials') },
  });
});
