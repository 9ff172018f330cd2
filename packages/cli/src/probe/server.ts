import { createParser } from 'eventsource-parser';
import { Failure } from '../failure.ts';
import { member } from './member.ts';

const REVISION = '2026-07-28';
const TIMEOUT_MS = 30_000;
/** The largest answer that is read, in characters. */
const MAX_ANSWER_LENGTH = 16_777_216;

/** The call, which is the same in both rounds. */
export interface Target {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read';
  readonly params: Readonly<Record<string, unknown>>;
}

/** A server's answer. */
export type Outcome =
  /** The server asks for input. `state` is the `requestState`, if the server sent one. */
  | { readonly kind: 'asked'; readonly questions: unknown; readonly state: unknown }
  | { readonly kind: 'done'; readonly isError: boolean }
  /** A JSON-RPC error, or an HTTP status without one. */
  | { readonly kind: 'refused'; readonly why: string };

/** An MCP server, called without the SDK, so that a request can be anything that an attacker could send. */
export class ProbedServer {
  readonly #url: URL;
  #lastId = 0;

  constructor(url: URL) {
    this.#url = url;
  }

  /** @throws {Failure} `not-probed` when the server cannot be reached, or does not answer with JSON-RPC. */
  async call({ method, params }: Target, token: string | undefined, more: object = {}): Promise<Outcome> {
    this.#lastId += 1;
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: this.#lastId,
      method,
      params: { ...params, ...more, _meta: META },
    });
    let response: Response;
    let message: unknown;
    try {
      response = await fetch(this.#url, {
        method: 'POST',
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': REVISION,
          'mcp-method': method,
          'mcp-name': encodeURI(String(params['name'] ?? params['uri'])),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body,
      });
      message = await answerOf(response, this.#lastId);
    } catch (error) {
      if (error instanceof Failure) throw error;
      // Leaves out the message and the cause: they may quote the address, which may contain a secret.
      throw new Failure('not-probed', `the server did not answer (${error instanceof Error ? error.name : 'unknown'})`);
    }
    return outcomeOf(message, response.status);
  }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'sealring-probe', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, sampling: {}, roots: {} },
};

/** Statuses that show nothing about the state: the server, or a proxy in front of it, was too busy. */
const BUSY: readonly number[] = [408, 425, 429, 502, 503, 504];

/** @throws {Failure} `not-probed` for an answer that neither accepts nor refuses the state. */
function outcomeOf(message: unknown, status: number): Outcome {
  const error = member(message, 'error');
  const result = member(message, 'result');
  const isRefusal = error !== undefined || (status >= 400 && status < 500);
  if (BUSY.includes(status) || (result === undefined && !isRefusal)) {
    throw new Failure('not-probed', `the server did not answer with an MCP message (HTTP status ${status})`);
  }
  if (error !== undefined) return { kind: 'refused', why: `JSON-RPC error ${codeOf(error)}` };
  if (result === undefined) return { kind: 'refused', why: `HTTP status ${status}` };
  if (member(result, 'resultType') === 'input_required') {
    return { kind: 'asked', questions: member(result, 'inputRequests'), state: member(result, 'requestState') };
  }
  return { kind: 'done', isError: member(result, 'isError') === true };
}

/** The code of an error. Only a number is printed: text could hide or forge lines of the report on a terminal. */
function codeOf(error: unknown): string {
  const code = member(error, 'code');
  return typeof code === 'number' ? String(code) : 'without a code';
}

/** The message with this id; undefined if the server sent none. */
async function answerOf(response: Response, id: number): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = '';
  let found: unknown;
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = parsed(data);
      if (member(message, 'id') === id) found = message;
    },
  });
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
  let length = 0;
  for await (const chunk of response.body ?? []) {
    const part = decoder.decode(chunk, { stream: true });
    length += part.length;
    if (length > MAX_ANSWER_LENGTH) throw new Failure('not-probed', 'the answer of the server is too large');
    if (isStream) parser.feed(part);
    else text += part;
    // The server might not end the stream.
    if (found !== undefined) break;
  }
  return isStream ? found : parsed(text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
