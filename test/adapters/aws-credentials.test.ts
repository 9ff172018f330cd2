import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { dynamodbRing } from '@sealring/dynamodb';
import { s3Ring } from '@sealring/s3';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Answerer, type HttpStub, startHttpStub } from '../support/http-stub.ts';

const keyId = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';

/** One call of each adapter whose own client takes credentials from the AWS default chain. */
const CALLS: Record<string, () => Promise<unknown>> = {
  async 'aws-kms'() {
    const keyWrapper = awsKmsKeyWrapper({ keyId, maxAttempts: 1 });
    onTestFinished(() => keyWrapper.close());
    return keyWrapper.unwrap({ provider: 'aws-kms', keyId, wrapped: new Uint8Array(100) }, { context: {} });
  },
  async s3() {
    const ring = s3Ring({ bucket: 'sealring', key: 'ring', forcePathStyle: true });
    onTestFinished(() => ring.close());
    return ring.read();
  },
  async dynamodb() {
    const ring = dynamodbRing({ table: 'sealring' });
    onTestFinished(() => ring.close());
    return ring.read();
  },
};

const folder = mkdtempSync(join(tmpdir(), 'sealring-sts-'));
const token = join(folder, 'token');

async function startStub(answer: Answerer): Promise<HttpStub> {
  const stub = await startHttpStub(answer);
  onTestFinished(() => stub.close());
  return stub;
}

beforeEach(() => {
  writeFileSync(token, 'a.b.c');
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE']) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', token);
  vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::111122223333:role/payments');
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'none'));
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'));
  vi.stubEnv('AWS_MAX_ATTEMPTS', '1');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(token);
});

describe.each(Object.entries(CALLS))('%s with a role that STS gives it', (_, call) => {
  test.each([
    [403, 'AccessDenied'],
    [403, 'IDPRejectedClaim'],
    [400, 'InvalidIdentityToken'],
    [404, 'ResourceNotFoundException'],
  ])(
    'an answer of STS with status %i and code %s means that there are no credentials, not a refusal by the service',
    async (status, code) => {
      const sts = await startStub((__, response) => {
        response.writeHead(status, { 'content-type': 'text/xml' });
        response.end(`<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code></Error></ErrorResponse>`);
      });
      const service = await startStub((__, response) => response.end('{}'));
      vi.stubEnv('AWS_ENDPOINT_URL', service.endpoint);
      vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.endpoint);
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: 'unavailable' });
      expect(String(error)).toContain('CredentialsProviderError');
      expect(String(error)).toContain('credentials are missing, wrong or expired');
      expect(String(error)).not.toContain(String(status));
      expect(sts.requests.length).toBeGreaterThan(0);
      expect(service.requests).toEqual([]);
    },
  );

  test('a refusal by the service itself stays a refusal', async () => {
    const credentials =
      '<Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken>' +
      '<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>';
    const sts = await startStub((__, response) => {
      const result = `<AssumeRoleWithWebIdentityResult>${credentials}</AssumeRoleWithWebIdentityResult>`;
      response.writeHead(200, { 'content-type': 'text/xml' });
      response.end(`<AssumeRoleWithWebIdentityResponse>${result}</AssumeRoleWithWebIdentityResponse>`);
    });
    const service = await startStub((__, response) => response.writeHead(403).end());
    vi.stubEnv('AWS_ENDPOINT_URL', service.endpoint);
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.endpoint);
    await expect(call()).rejects.toMatchObject({ kind: 'denied' });
    expect([sts.requests.length, service.requests.length]).toEqual([1, 1]);
  });
});
