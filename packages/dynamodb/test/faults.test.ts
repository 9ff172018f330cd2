import { inspect } from 'node:util';
import { RingConflictError, type RingStoreErrorKind } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
import { dynamodbRing, dynamodbSingleUse } from '../src/index.ts';
import { clientOf, sendError, startStub } from './dynamodb-stub.ts';

const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
const cannotTell = (kind: RingStoreErrorKind) => ({ name: 'SingleUseStoreError', kind });
const soon = (): Date => new Date(Date.now() + 60_000);

describe('the DynamoDB SDK against a local server', () => {
  const closing: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function stubbed(answer: Parameters<typeof startStub>[0], callTimeoutSeconds = 5) {
    const stub = await startStub(answer);
    closing.push(() => stub.close());
    return { stub, ...storesAt(stub.endpoint, callTimeoutSeconds) };
  }

  function storesAt(endpoint: string, callTimeoutSeconds: number) {
    const client = clientOf(endpoint);
    closing.push(() => client.destroy());
    const options = { table: 'sealring', client, callTimeoutSeconds };
    return { ring: dynamodbRing({ ...options, name: 'payments' }), used: dynamodbSingleUse(options) };
  }

  test('reads are strongly consistent, because other reads may be stale', async () => {
    const { stub, ring } = await stubbed((_, response) =>
      response.end('{"ConsumedCapacity":{"TableName":"sealring","CapacityUnits":1}}'),
    );
    expect(await ring.read()).toBeUndefined();
    expect(stub.requests).toMatchObject([
      ['GetItem', { TableName: 'sealring', Key: { pk: { S: 'ring#payments' } }, ConsistentRead: true }],
    ]);
  });

  test.each([
    ['ConditionalCheckFailedException', 400],
    ['TransactionConflictException', 400],
    ['ReplicatedWriteConflictException', 400],
  ])('%s in answer to a write is a conflict, and the write is not retried', async (name, status) => {
    const { stub, ring } = await stubbed((_, response) => sendError(response, status, name));
    for (const expected of [undefined, 'x']) {
      await expect(ring.write('x', { expected })).rejects.toBeInstanceOf(RingConflictError);
    }
    expect(stub.requests).toHaveLength(2);
  });

  test.each([
    ['ResourceNotFoundException', 400, 'unavailable'],
    ['ProvisionedThroughputExceededException', 400, 'unavailable'],
    ['ThrottlingException', 400, 'unavailable'],
    ['RequestLimitExceeded', 400, 'unavailable'],
    ['InternalServerError', 500, 'unavailable'],
    ['TransactionConflictException', 400, 'unavailable'],
    ['ExpiredTokenException', 400, 'unavailable'],
    ['AccessDeniedException', 400, 'denied'],
    ['UnrecognizedClientException', 400, 'denied'],
    ['ValidationException', 400, 'denied'],
  ] as const)('%s never means that the ring is absent, and makes a claim reject (F9)', async (name, status, kind) => {
    const { stub, ring, used } = await stubbed((_, response) => sendError(response, status, name));
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
    await expect(used.claim('id', soon())).rejects.toMatchObject(cannotTell(kind));
    expect(stub.requests).toHaveLength(2);
  });

  test.each([
    ['Signature expired: 20261121T030000Z is now earlier than 20261121T030500Z', 'unavailable', 'clock'],
    ['Signature not yet current: 20261121T031500Z is still later than …', 'unavailable', 'clock'],
    ['The request signature we calculated does not match the signature you provided.', 'denied', 'credentials'],
  ] as const)('a signature that is refused with the message %j is %s', async (message, kind, detail) => {
    const name = 'InvalidSignatureException';
    const { ring, used } = await stubbed((_, response) => sendError(response, 400, name, message));
    const refusal = { kind, detail: expect.stringContaining(detail), serviceCode: name };
    await expect(ring.read()).rejects.toMatchObject(refusal);
    await expect(used.claim('id', soon())).rejects.toMatchObject({ kind });
  });

  test('with a clock that differs by ten minutes, a second read uses the time of DynamoDB', async () => {
    const date = new Date(Date.now() + 600_000).toUTCString();
    const { stub, ring } = await stubbed((_, response) => {
      response.setHeader('date', date);
      if (stub.requests.length > 1) response.end('{"ConsumedCapacity":{"TableName":"sealring","CapacityUnits":1}}');
      else sendError(response, 400, 'InvalidSignatureException', '');
    });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    expect(await ring.read()).toBeUndefined();
  });

  test.each([
    ['empty', ''],
    ['an empty object', '{}'],
    ['null', 'null'],
    ['a page', '<html>welcome</html>'],
    ['of another service', '{"Item":{"document":{"S":"x"},"revision":{"S":"y"}}}'],
  ])(
    'a 200 that is %s, as a proxy might send, never counts as an absent ring, a write or a claim (F9)',
    async (_, body) => {
      const { ring, used } = await stubbed((__, response) => response.end(body));
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
      await expect(used.claim('id', soon())).rejects.toMatchObject(cannotTell('unavailable'));
    },
  );

  test.each([
    ['a 403 with a page is denied', 403, 'denied'],
    ['a 502 with a page is unavailable', 502, 'unavailable'],
  ] as const)('an answer from a proxy is classified by its status: %s', async (_, status, kind) => {
    const { ring } = await stubbed((__, response) => response.writeHead(status).end('<html>no</html>'));
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
  });

  test('calls to a hanging server end at the deadline, on abort or on close, and its connections are closed (F29)', async () => {
    const { stub, ring, used } = await stubbed(() => undefined, 0.2);
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    await expect(used.claim('id', soon())).rejects.toMatchObject(cannotTell('unavailable'));
    await stub.allClosed();
    const slow = storesAt(stub.endpoint, 60);
    await expect(slow.ring.read({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject(failed('unavailable'));
    const [reading, claiming] = [slow.ring.read(), slow.used.claim('id', soon())];
    await Promise.all([slow.ring.close(), slow.used.close()]);
    await expect(reading).rejects.toMatchObject(failed('unavailable'));
    await expect(claiming).rejects.toMatchObject(cannotTell('unavailable'));
    await expect(slow.ring.read()).rejects.toMatchObject(failed('unavailable'));
    await stub.allClosed();
  });

  test('no error contains text from the service or data of the client (F33)', async () => {
    const canary = 'CANARY-6c1f';
    const stub = await startStub((_, response) => sendError(response, 500, canary, canary));
    closing.push(() => stub.close());
    const client = clientOf(stub.endpoint, canary, canary);
    closing.push(() => client.destroy());
    const ring = dynamodbRing({ table: canary, client });
    for (const call of [
      () => ring.read(),
      () => ring.write(canary, { expected: canary }),
      () => dynamodbSingleUse({ table: canary, client }).claim(canary, soon()),
    ]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: 'unavailable' });
      expect(error).not.toHaveProperty('cause');
      const shown = inspect(error, { depth: Infinity, showHidden: true, getters: true });
      expect(shown + String(Object(error).stack) + JSON.stringify(error)).not.toContain(canary);
    }
  });
});
