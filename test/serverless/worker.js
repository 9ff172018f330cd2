/** A Worker with a codec on a ring in S3, as workerd runs it: one codec for all requests of an isolate. */
import { Buffer } from 'node:buffer';
import { S3Client } from '@aws-sdk/client-s3';
import { createKmsCodec, localKeyWrapper } from '@sealring/core';
import { s3Ring } from '@sealring/s3';

let starting;

function start({ ENDPOINT, MASTER_KEY, POLICY }) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new S3Client({
    endpoint: ENDPOINT,
    region: 'us-east-1',
    maxAttempts: 1,
    forcePathStyle: true,
    credentials,
  });
  return createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: Buffer.from(MASTER_KEY, 'hex') }),
    ring: s3Ring({ bucket: 'rings', key: 'payments.ring', client }),
    create: 'now',
    policy: JSON.parse(POLICY),
  });
}

export default {
  async fetch(request, env) {
    starting ??= start(env);
    try {
      const codec = await starting;
      const body = await request.text();
      const { pathname } = new URL(request.url);
      // Each request waits for what `prepare` does: nothing runs between two requests.
      await codec.prepare(pathname === '/unseal' ? body : undefined);
      if (pathname === '/seal') return new Response(codec.seal(Buffer.from(body)));
      if (pathname === '/unseal') return new Response(codec.unseal(body));
      return Response.json({ keys: codec.health().keys.map(({ id }) => id) });
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
