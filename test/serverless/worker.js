/** A Worker with a codec on a ring in S3, as workerd runs it: one codec for all requests of an isolate. */
import { Buffer } from 'node:buffer';
import { S3Client } from '@aws-sdk/client-s3';
import { createKmsCodec, localKeyWrapper } from '@sealring/core';
import { s3Ring } from '@sealring/s3';

let starting;

function ringAt(endpoint, bucket, key) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new S3Client({ endpoint, region: 'us-east-1', maxAttempts: 1, forcePathStyle: true, credentials });
  return s3Ring({ bucket, key, client });
}

function start({ ENDPOINT, BUCKET, KEY, MASTER_KEY, POLICY }) {
  return createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: Buffer.from(MASTER_KEY, 'hex') }),
    ring: ringAt(ENDPOINT, BUCKET, KEY),
    create: 'now',
    policy: JSON.parse(POLICY),
  });
}

/** Makes one call to the store. @returns its result or error. */
async function callStore({ endpoint, bucket, key, document, expected }) {
  const ring = ringAt(endpoint, bucket, key);
  try {
    return { value: (await (document === undefined ? ring.read() : ring.write(document, { expected }))) ?? null };
  } catch ({ name, kind, message }) {
    return { name, kind, message };
  }
}

export default {
  async fetch(request, env) {
    try {
      const body = await request.text();
      const { pathname } = new URL(request.url);
      if (pathname === '/none') return new Response();
      if (pathname === '/store') return Response.json(await callStore(JSON.parse(body)));
      starting ??= start(env);
      const codec = await starting;
      // Each request waits for `prepare`: nothing runs between two requests.
      await codec.prepare(pathname === '/unseal' ? body : undefined);
      if (pathname === '/seal') return new Response(codec.seal(Buffer.from(body)));
      if (pathname === '/unseal') return new Response(codec.unseal(body));
      if (pathname === '/rotate') await codec.rotate({ emergency: true });
      return Response.json({ keys: codec.health().keys.map(({ id }) => id) });
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
