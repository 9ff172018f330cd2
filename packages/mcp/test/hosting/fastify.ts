import { createMcpFastifyApp } from '@modelcontextprotocol/fastify';
import { type HttpVariant, MOUNTS } from './http-variant.ts';
import { signIn } from './node-http.ts';
import { hostOf, NodeMounts } from './node-mounts.ts';

/** Fastify 5: it parses JSON itself; `auth` is set on the raw request. */
export const onFastify: HttpVariant = async (factory, { verifier, bodyParser = 'before' } = {}) => {
  const mounts = new NodeMounts(factory);
  const app = createMcpFastifyApp();
  if (bodyParser === 'none') {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  }
  for (const mount of MOUNTS) {
    app.all(mount, async (request, reply) => {
      const auth = verifier === undefined ? undefined : await signIn(verifier, request.raw);
      if (auth instanceof Response) {
        return await reply
          .code(auth.status)
          .headers(Object.fromEntries(auth.headers))
          .send(await auth.json());
      }
      const { method, url } = request;
      const raw = Object.assign(request.raw, { method, url }, auth === undefined ? {} : { auth });
      return await mounts.serve(mount, raw, reply.raw, bodyParser === 'before' ? request.body : undefined);
    });
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  const host = hostOf(app.server, mounts);
  return {
    origin: host.origin,
    async [Symbol.asyncDispose]() {
      await mounts.close();
      app.server.closeAllConnections();
      await app.close();
    },
  };
};
