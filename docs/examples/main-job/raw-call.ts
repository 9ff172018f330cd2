import { accessTokens } from './sign-in.ts';

/** One `tools/call` as an attacker, a replay or a load test would send it: any arguments, any token, any bearer. */
export interface RawCall {
  readonly url: string;
  readonly as?: keyof typeof accessTokens;
  readonly tool?: string;
  readonly order: { readonly order: string; readonly cents: number };
  readonly requestState?: string;
}

/** The answer, reduced to what the story checks. */
export interface RawAnswer {
  readonly error?: { readonly code: number; readonly message: string };
  readonly requestState?: string;
  readonly text?: string;
}

const REVISION = '2026-07-28';
let lastId = 0;

export async function rawCall({ url, as = 'ada', tool = 'refund', order, requestState }: RawCall): Promise<RawAnswer> {
  lastId += 1;
  const params = {
    name: tool,
    arguments: order,
    ...(requestState === undefined
      ? {}
      : { requestState, inputResponses: { confirm: { action: 'accept', content: { sure: true } } } }),
    _meta: {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    },
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${accessTokens[as]}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': 'tools/call',
      'mcp-name': tool,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: lastId, method: 'tools/call', params }),
  });
  return readAnswer(await response.json());
}

/** Reads a JSON-RPC answer to `tools/call`, and omits absent members. */
export function readAnswer(message: unknown): RawAnswer {
  const error = member(message, 'error');
  const result = member(message, 'result');
  const [code, text] = [member(error, 'code'), member(error, 'message')];
  const requestState = member(result, 'requestState');
  const content = member(result, 'content');
  const first = Array.isArray(content) ? member(content[0], 'text') : undefined;
  return {
    ...(typeof code === 'number' && typeof text === 'string' ? { error: { code, message: text } } : {}),
    ...(typeof requestState === 'string' ? { requestState } : {}),
    ...(typeof first === 'string' ? { text: first } : {}),
  };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
