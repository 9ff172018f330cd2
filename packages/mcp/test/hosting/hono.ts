import { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { createMcpHonoApp } from '@modelcontextprotocol/hono';
import { requireBearerAuth } from '@modelcontextprotocol/server';
import { type Context, Hono } from 'hono';
import { type HttpVariant, MOUNTS } from './http-variant.ts';
import { hostOf } from './node-mounts.ts';
import { WebMounts } from './web-mounts.ts';

/** Hono on web-standard requests: `authInfo` and the parsed body are handed to `handler.fetch`. */
export const onHono: HttpVariant = async (factory, { verifier, bodyParser = 'before' } = {}) => {
  const mounts = new WebMounts(factory);
  const app = bodyParser === 'before' ? createMcpHonoApp() : new Hono();
  if (bodyParser === 'not handed on') {
    app.use(async (c, next) => {
      await c.req.json();
      await next();
    });
  }
  const gate = verifier === undefined ? undefined : requireBearerAuth({ verifier });
  for (const mount of MOUNTS) {
    app.all(mount, async (c: Context) => {
      const authInfo = await gate?.(c.req.raw);
      if (authInfo instanceof Response) return authInfo;
      const parsedBody: unknown = c.get('parsedBody');
      return await mounts.serve(mount, c.req.raw, { ...(authInfo === undefined ? {} : { authInfo }), parsedBody });
    });
  }
  const http = await new Promise<unknown>((listening) => {
    const started = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => listening(started));
  });
  if (!(http instanceof Server)) throw new Error('not a server of node:http');
  return hostOf(http, mounts);
};
