import { errorAnswer, internalError, invalidRequestStateError, Refusal, type WireError } from '../boundary/refusal.ts';
import { isCarrierMethod } from '../boundary/request-identity.ts';
import type { StateGuard } from '../server/state-guard.ts';
import { ownMember } from '../shared/own-member.ts';
import { Call, carrierMethodOf, carriesState, hasId, messagesIn } from './call.ts';
import { rewriteEvents } from './event-stream.ts';
import { parseExactly, printExactly } from './exact-json.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { hasDuplicates } from './json-structure.ts';
import { mayHaveState } from './lenient-reading.ts';
import {
  DIGESTS,
  type JsonBody,
  type RefusedBody,
  readRequestBody,
  refusedEncoding,
  withBody,
  withMessage,
} from './request-body.ts';

/** The size limits, in bytes. */
interface Limits {
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
}

/** One HTTP request. */
interface Exchange {
  readonly principal: () => Promise<unknown>;
  readonly handle: (request: Request) => Promise<Response>;
}

/** Guards the requests and responses of one handler. */
export class GuardedFetch {
  readonly #guard: StateGuard;
  readonly #limits: Limits;

  constructor(guard: StateGuard, limits: Limits) {
    this.#guard = guard;
    this.#limits = limits;
  }

  async serve(request: Request, { principal, handle }: Exchange): Promise<Response> {
    const body = await readRequestBody(request, this.#limits.maxRequestBytes);
    if (body.kind === 'refused') return this.#refused(body);
    if (body.kind === 'other') return await this.#outgoing(await handle(body.request), undefined, false);
    const { value: message } = body;
    const method = carrierMethodOf(message);
    if (method === undefined || !hasId(message)) return await this.#serveOther(request, body, handle);
    const call = new Call(this.#guard, Object(message), { method, signal: request.signal, principal });
    try {
      await call.unseal();
    } catch (error) {
      return answerOf(errorAnswer(call.id, wireError(error)));
    }
    const checked = printed(message);
    if (checked === undefined) return this.#refused(TOO_DEEP);
    return await this.#outgoing(await handle(withMessage(request, checked)), call, true);
  }

  /** Serves a request other than a single call that may carry a state. */
  async #serveOther(request: Request, body: JsonBody, handle: Exchange['handle']): Promise<Response> {
    if (!body.holdsRpc) {
      return await this.#outgoing(await handle(withBody(request, body.bytes, request.headers)), undefined, false);
    }
    if (!this.#mayPass(messagesIn(body.value))) {
      return Response.json(errorAnswer(null, invalidRequestStateError()), { status: 400 });
    }
    const checked = body.mustPrint ? printed(body.value) : body.bytes;
    if (checked === undefined) return this.#refused(TOO_DEEP);
    return await this.#outgoing(await handle(withMessage(request, checked)), undefined, true);
  }

  /**
   * Whether messages other than a single request of a carrier method may reach the handler. A batch must not contain
   * a state, because the protocol revision that defines states does not allow batches.
   */
  #mayPass(messages: readonly unknown[]): boolean {
    const method = messages.filter(carriesState).map(carrierMethodOf).find(isCarrierMethod);
    if (method === undefined) return true;
    this.#guard.reject('inbound', method, new Refusal('unverified requestState'));
    return false;
  }

  async #outgoing(response: Response, call: Call | undefined, ofRpc: boolean): Promise<Response> {
    const { body } = response;
    const type = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
    const isEvents = type === 'text/event-stream';
    const isJson = ofRpc && (type === 'application/json' || type.endsWith('+json'));
    // An error response may be a page from another server, so it is passed on. MCP clients ignore results of another
    // content type, but people can read such results, so those are not passed on.
    const isUnexpected = call !== undefined && response.ok && !isEvents && !isJson;
    if (body === null || !(isEvents || isJson || isUnexpected)) return response;
    if (isUnexpected || refusedEncoding(response.headers) !== undefined) {
      await body.cancel();
      return this.#unreadable(call);
    }
    const rewrite = (message: unknown): Promise<unknown> => this.#rewrite(message, call);
    if (isEvents) {
      const rewriting = rewriteEvents({
        rewrite,
        isAnswer: call !== undefined,
        unreadable: () =>
          errorAnswer(call?.id, this.#guard.refuseOutbound('unknown', new Refusal('unsealed requestState'))),
        maxEventBytes: this.#limits.maxResponseBytes,
        tooLarge: () => this.#tooLarge(),
      });
      return withAnswer(response, body.pipeThrough(rewriting));
    }
    const bytes = await readWithin(body, this.#limits.maxResponseBytes);
    if (bytes === undefined) {
      this.#tooLarge();
      return this.#unsent(call);
    }
    const text = new TextDecoder().decode(bytes);
    const mustBeJson = call !== undefined && response.ok;
    let message: unknown;
    try {
      message = parseExactly(mustBeJson ? new TextDecoder('utf-8', { fatal: true }).decode(bytes) : text);
    } catch {
      return mustBeJson || mayHaveState(text) ? this.#unreadable(call) : new Response(Buffer.from(bytes), response);
    }
    const rewritten = await rewrite(message);
    // If two members have the same name, the client gets the one that was checked.
    if (rewritten === message && !(mayHaveState(text) && hasDuplicates(text, message)))
      return new Response(Buffer.from(bytes), response);
    const checked = printed(rewritten);
    return checked === undefined ? this.#unreadable(call) : withAnswer(response, checked);
  }

  /** A message of the server in the form that may be sent. */
  async #rewrite(message: unknown, call: Call | undefined): Promise<unknown> {
    if (Array.isArray(message)) return await this.#rewriteBatch(message);
    const result = ownMember(message, 'result');
    const id = ownMember(message, 'id');
    try {
      if (call === undefined || id !== call.id) {
        // A state is bound to the request that it answers, and this message answers no request that was read.
        if ((ownMember(result, 'requestState') ?? undefined) === undefined) return message;
        throw this.#guard.refuseOutbound('unknown', new Refusal('unsealed requestState'));
      }
      const sealed = await call.sealed(result);
      return sealed === result ? message : { ...Object(message), result: sealed };
    } catch (error) {
      return errorAnswer(id, wireError(error));
    }
  }

  async #rewriteBatch(messages: readonly unknown[]): Promise<unknown> {
    const rewritten = await Promise.all(messages.map((message) => this.#rewrite(message, undefined)));
    return rewritten.every((message, index) => message === messages[index]) ? messages : rewritten;
  }

  #refused({ status, message }: RefusedBody): Response {
    if (status === 400) this.#guard.report(`refused inbound: ${message}`);
    return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } }, { status });
  }

  #tooLarge(): void {
    this.#guard.report(`a response has more than ${this.#limits.maxResponseBytes} bytes`);
  }

  #unreadable(call: Call | undefined): Response {
    this.#guard.report('a response cannot be read: it must be JSON or server-sent events, in UTF-8, not compressed');
    return this.#unsent(call);
  }

  #unsent(call: Call | undefined): Response {
    return answerOf(errorAnswer(call?.id, internalError()), call === undefined ? 500 : 200);
  }
}

const TOO_DEEP: RefusedBody = { status: 400, message: 'Bad Request: the body is nested too deeply' };

/** The JSON of a message; undefined for one that is nested too deeply. */
function printed(message: unknown): string | undefined {
  try {
    return printExactly(message);
  } catch {
    return undefined;
  }
}

/** The error for a client: invalid state, or an internal error. */
function wireError(error: unknown): WireError {
  const refused = invalidRequestStateError();
  return error instanceof Error && ownMember(error, 'code') === refused.code ? refused : internalError();
}

function answerOf(message: object, status = 200): Response {
  return new Response(printExactly(message), { status, headers: { 'content-type': 'application/json' } });
}

function withAnswer(response: Response, body: ReadableStream<Uint8Array> | string): Response {
  const headers = new Headers(response.headers);
  for (const name of ['content-length', 'etag', ...DIGESTS]) headers.delete(name);
  const { status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

async function readWithin(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array | undefined> {
  const read = new GatheredBytes();
  for await (const chunk of body) {
    read.add(chunk);
    if (read.size > maxBytes) return undefined;
  }
  return read.bytes;
}
