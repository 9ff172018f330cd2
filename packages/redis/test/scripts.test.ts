import { createHash, randomUUID } from 'node:crypto';
import { createClient } from 'redis';
import { expect, inject, test } from 'vitest';
import { redisRing } from '../src/index.ts';
import { READ } from '../src/scripts.ts';

const url = inject('redis');

test.skipIf(url === '')('scripts are sent again to a server that lost them', async () => {
  const client = await createClient({ url }).connect();
  const ring = redisRing({ client, key: `test:${randomUUID()}` });
  const first = await ring.write('one', { expected: undefined });
  await client.sendCommand(['SCRIPT', 'FLUSH']);
  expect((await ring.read())?.document).toBe('one');
  await client.sendCommand(['SCRIPT', 'FLUSH']);
  await ring.write('two', { expected: first.revision });
  expect((await ring.read())?.document).toBe('two');
  client.destroy();
});

test('a script is sent as its hash, and as its text only to a server that lacks it', async () => {
  const sent: unknown[] = [];
  const errors = ['NOSCRIPT text', 'LOADING text'];
  const client = {
    async sendCommand(args: string[], options: unknown) {
      sent.push([args, options]);
      if (args[0] === 'EVALSHA_RO') throw new Error(errors.shift());
      return ['absent'];
    },
  };
  const ring = redisRing({ client, key: 'k' });
  expect(await ring.read()).toBeUndefined();
  await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', serviceCode: 'LOADING' });
  const hash = createHash('sha1').update(READ.source).digest('hex');
  const options = { abortSignal: expect.any(AbortSignal), typeMapping: { 36: Buffer } };
  const byHash = [['EVALSHA_RO', hash, '1', 'k', '262144'], options];
  expect(sent).toEqual([byHash, [['EVAL_RO', READ.source, '1', 'k', '262144'], options], byHash]);
});
