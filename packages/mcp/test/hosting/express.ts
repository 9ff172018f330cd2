import { createMcpExpressApp, requireBearerAuth } from '@modelcontextprotocol/express';
import express, { type RequestHandler } from 'express';
import { type HttpVariant, MOUNTS } from './http-variant.ts';
import { hostOf, NodeMounts } from './node-mounts.ts';

const nobody: RequestHandler = (_request, _response, next) => next();

/** Express 5: `createMcpExpressApp` parses JSON and checks Host and Origin, `requireBearerAuth` sets `request.auth`. */
export const onExpress: HttpVariant = async (factory, { verifier, bodyParser = 'before' } = {}) => {
  const mounts = new NodeMounts(factory);
  const app = bodyParser === 'none' ? express() : createMcpExpressApp();
  const auth = verifier === undefined ? nobody : requireBearerAuth({ verifier });
  for (const mount of MOUNTS) {
    app.all(mount, auth, (request, response, next) => {
      mounts.serve(mount, request, response, bodyParser === 'before' ? request.body : undefined).catch(next);
    });
  }
  const http = app.listen(0, '127.0.0.1');
  await new Promise((listening) => http.once('listening', listening));
  return hostOf(http, mounts);
};
