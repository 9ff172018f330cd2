import { expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startHttpStub } from '../../../test/support/http-stub.ts';
import { gcsRing } from '../src/index.ts';
import { ownClient } from '../src/own-client.ts';
import { sendObject } from './gcs-stub.ts';

test.each([
  [undefined, 'https://storage.googleapis.com', undefined, 'GoogleAuth'],
  ['https://storage.internal/', 'https://storage.internal', true, 'GoogleAuth'],
  ['http://127.0.0.1:1', 'http://127.0.0.1:1', true, 'PassThroughClient'],
])('the store’s own client for the endpoint %s authenticates there, except over http', (endpoint, at, always, auth) => {
  const client = ownClient({ endpoint: endpoint === undefined ? undefined : new URL(endpoint), mayBeHttp: false });
  expect(client).toMatchObject({ apiEndpoint: at, useAuthWithCustomEndpoint: always });
  const authClient: { readonly cachedCredential?: object } = Object(client.authClient);
  expect((authClient.cachedCredential ?? authClient).constructor.name).toBe(auth);
});

test('an emulator that STORAGE_EMULATOR_HOST names gets no credentials', async () => {
  const metadata = await startHttpStub(({ url }, response) => {
    response.setHeader('metadata-flavor', 'Google').setHeader('content-type', 'application/json');
    response.end(url.includes('/token') ? '{"access_token":"canary","expires_in":3600,"token_type":"Bearer"}' : '{}');
  });
  const stub = await startHttpStub((_, response) => sendObject(response, 'x'));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await Promise.all([metadata.close(), stub.close()]);
  });
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', undefined);
  vi.stubEnv('HOME', '/nonexistent');
  vi.stubEnv('METADATA_SERVER_DETECTION', 'assume-present');
  vi.stubEnv('GCE_METADATA_HOST', new URL(metadata.endpoint).host);
  vi.stubEnv('STORAGE_EMULATOR_HOST', stub.endpoint);
  const ring = gcsRing({ bucket: 'ring', object: 'k' });
  expect(await ring.read()).toEqual({ document: 'x', revision: '1' });
  expect(stub.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
});

test.each([
  ['http://emulator.example:4443', /STORAGE_EMULATOR_HOST .*dangerouslyAllowHttp/],
  ['http://user:canary@127.0.0.1:4443', /STORAGE_EMULATOR_HOST .*without a user/],
  ['', /STORAGE_EMULATOR_HOST must be an https/],
])('STORAGE_EMULATOR_HOST with the value %j causes a RangeError, as the option endpoint does', (host, message) => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('STORAGE_EMULATOR_HOST', host);
  const make = (): unknown => gcsRing({ bucket: 'ring', object: 'k' });
  expect(make).toThrow(RangeError);
  expect(make).toThrow(message);
  expect(make).not.toThrow('canary');
});

test('STORAGE_EMULATOR_HOST may name another machine with dangerouslyAllowHttp, and does not replace an endpoint', () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('STORAGE_EMULATOR_HOST', 'http://emulator.example:4443');
  expect(ownClient({ endpoint: undefined, mayBeHttp: true }).apiEndpoint).toBe('http://emulator.example:4443');
  const endpoint = new URL('https://storage.internal');
  expect(ownClient({ endpoint, mayBeHttp: false }).apiEndpoint).toBe('https://storage.internal');
});

test('an emulator gets no credentials', async () => {
  const stub = await startHttpStub((_, response) => sendObject(response, 'x'));
  const ring = gcsRing({ bucket: 'ring', object: 'k', endpoint: stub.endpoint });
  expect(await ring.read()).toEqual({ document: 'x', revision: '1' });
  expect(stub.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  await stub.close();
});
