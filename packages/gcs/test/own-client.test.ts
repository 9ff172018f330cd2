import { expect, test } from 'vitest';
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
  const client = ownClient(endpoint === undefined ? undefined : new URL(endpoint));
  expect(client).toMatchObject({ apiEndpoint: at, useAuthWithCustomEndpoint: always });
  const authClient: { readonly cachedCredential?: object } = Object(client.authClient);
  expect((authClient.cachedCredential ?? authClient).constructor.name).toBe(auth);
});

test('an emulator gets no credentials', async () => {
  const stub = await startHttpStub((_, response) => sendObject(response, 'x'));
  const ring = gcsRing({ bucket: 'ring', object: 'k', endpoint: stub.endpoint });
  expect(await ring.read()).toEqual({ document: 'x', revision: '1' });
  expect(stub.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  await stub.close();
});
