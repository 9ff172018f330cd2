import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { localhostHostValidation, localhostOriginValidation } from '@modelcontextprotocol/node';
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  type OAuthTokenVerifier,
  verifyBearerToken,
} from '@modelcontextprotocol/server';
import { type HttpVariant, mountOf } from './http-variant.ts';
import { hostOf, NodeMounts } from './node-mounts.ts';

/** Plain node:http: the program calls the guards itself, and sets `auth` on the request. */
export const nodeHttp: HttpVariant = async (factory, { verifier, bodyParser = 'none' } = {}) => {
  const mounts = new NodeMounts(factory);
  const [validHost, validOrigin] = [localhostHostValidation(), localhostOriginValidation()];
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!validHost(incoming, response) || !validOrigin(incoming, response)) return;
    const { method = 'GET', url = '/' } = incoming;
    const mount = mountOf(url);
    if (mount === undefined) return void response.writeHead(404).end();
    const auth = verifier === undefined ? undefined : await signIn(verifier, incoming);
    if (auth instanceof Response) {
      return void response.writeHead(auth.status, Object.fromEntries(auth.headers)).end(await auth.text());
    }
    const request = Object.assign(incoming, { method, url }, auth === undefined ? {} : { auth });
    const body = bodyParser === 'none' || method !== 'POST' ? undefined : await json(incoming);
    await mounts.serve(mount, request, response, bodyParser === 'before' ? body : undefined);
  };
  const http = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  return hostOf(http, mounts);
};

/** The signed-in user, or the challenge to answer with. */
export async function signIn(
  verifier: OAuthTokenVerifier,
  request: Pick<IncomingMessage, 'headers'>,
): Promise<AuthInfo | Response> {
  try {
    return await verifyBearerToken(request.headers.authorization, { verifier });
  } catch (error) {
    return bearerAuthChallengeResponse(error);
  }
}
