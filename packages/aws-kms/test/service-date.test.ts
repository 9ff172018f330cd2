import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KMSClient } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { awsKmsKeyWrapper } from '../src/index.ts';

const DATE = 'Sat, 21 Nov 2026 03:00:00 GMT';

let status = 200;
const server = createServer((_, response) => {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1', date: DATE });
  response.end('{"__type":"AccessDeniedException"}');
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => server.close());

/**
 * This checks only the dates of failed calls: the ring's tests check the dates of successful calls, against an
 * emulator.
 */
async function datesOf(answer: number): Promise<string[]> {
  status = answer;
  const client = new KMSClient({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'eu-west-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  });
  const dates: string[] = [];
  const wrapper = awsKmsKeyWrapper({ keyId: 'alias/sealring', client, maxAttempts: 1 });
  const onServiceDate = (date: Date) => void dates.push(date.toUTCString());
  await expect(wrapper.generate?.({ context: {}, onServiceDate })).rejects.toMatchObject({ name: 'KeyWrapperError' });
  client.destroy();
  return dates;
}

test('the Date of an answer is reported, even if the answer is a refusal (F13)', async () => {
  expect(await datesOf(400)).toEqual([DATE]);
  expect(await datesOf(200)).toEqual([DATE]);
});
