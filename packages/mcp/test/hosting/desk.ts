import {
  acceptedContent,
  type CallToolResult,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  type McpServerFactory,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, type RequestStateCodec } from '@sealring/core';
import {
  compactJson,
  createProtectedMcpServer,
  memorySingleUse,
  type RejectEvent,
  RequestStateSecurity,
  type SingleUseStore,
} from '../../src/index.ts';

/** The OAuth client and issuer of all users. */
export const CLIENT_ID = 'web';
export const ISSUER = 'https://idp.example';

/** The settings of a refund desk. Plain JSON: a desk on stdio is another process. */
export interface DeskSettings {
  /** 32 bytes, hexadecimal; the same for a fleet. */
  readonly key: string;
  readonly singleUse?: boolean;
  /** Every echo is held, before it is unsealed, until its client has disconnected. */
  readonly holdsEchoes?: boolean;
  /** Announces tools, prompts and resources, and has none. */
  readonly empty?: boolean;
  /** The user of the desk if there is no login: on stdio. */
  readonly worksFor?: string;
}

/** The desk's reports of its work. */
export type Told =
  | { readonly what: 'refused'; readonly event: RejectEvent }
  | { readonly what: 'handled'; readonly subject: string; readonly state: string | null }
  | { readonly what: 'sealed' | 'holding' | 'left' | 'claimed' };

/** The tools, prompts and resources of one desk: the first round asks, the second reports the returned state. */
export function deskFactory(settings: DeskSettings, tell: (told: Told) => void): McpServerFactory {
  const security = securityOf(settings, tell);
  return () => {
    const info = { name: 'refund-desk', version: '1.0.0' };
    const capabilities = settings.empty === true ? { tools: {}, prompts: {}, resources: {} } : {};
    const server = createProtectedMcpServer({ McpServer, serverInfo: info, security, serverOptions: { capabilities } });
    if (settings.empty !== true) register(server, tell);
    return server;
  };
}

function securityOf(settings: DeskSettings, tell: (told: Told) => void): RequestStateSecurity {
  const { key, holdsEchoes, worksFor } = settings;
  return new RequestStateSecurity({
    codec: new ToldCodec(new AesGcmRequestStateCodec([Buffer.from(key, 'hex')]), holdsEchoes === true, tell),
    ...(worksFor === undefined
      ? { requireSubject: true }
      : { bindPrincipal: () => compactJson([CLIENT_ID, ISSUER, worksFor]) }),
    ...(settings.singleUse === true ? { singleUse: claimsOf(tell) } : {}),
    onReject: (event) => tell({ what: 'refused', event }),
  });
}

/** Reports what it seals; with `holds`, keeps every echo waiting until its client has disconnected. */
class ToldCodec implements RequestStateCodec {
  readonly #codec: RequestStateCodec;
  readonly #holds: boolean;
  readonly #tell: (told: Told) => void;

  constructor(codec: RequestStateCodec, holds: boolean, tell: (told: Told) => void) {
    this.#codec = codec;
    this.#holds = holds;
    this.#tell = tell;
  }

  seal(payload: Uint8Array): string {
    this.#tell({ what: 'sealed' });
    return this.#codec.seal(payload);
  }

  unseal(token: string): Uint8Array {
    return this.#codec.unseal(token);
  }

  async prepare(_token: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    if (!this.#holds) return;
    this.#tell({ what: 'holding' });
    await new Promise<void>((left) => signal.addEventListener('abort', () => left(), { once: true }));
    this.#tell({ what: 'left' });
  }
}

function claimsOf(tell: (told: Told) => void): SingleUseStore {
  const store = memorySingleUse();
  return {
    claim: (id, expiresAt) => {
      tell({ what: 'claimed' });
      return store.claim(id, expiresAt);
    },
  };
}

const CONFIRM = inputRequired.elicit({
  message: 'Really?',
  requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
});

function register(server: McpServer, tell: (told: Told) => void): void {
  const round = (ctx: ServerContext, subject: string): { text: string } | { question: InputRequiredResult } => {
    const state = ctx.mcpReq.requestState<string>();
    tell({ what: 'handled', subject, state: state ?? null });
    if (state === undefined) {
      return { question: inputRequired({ inputRequests: { confirm: CONFIRM }, requestState: `asked:${subject}` }) };
    }
    const answer = acceptedContent<{ ok: boolean }>(ctx.mcpReq.inputResponses, 'confirm');
    return { text: `${state} ${answer?.ok === true ? 'yes' : 'no'}` };
  };
  server.registerTool(
    'refund',
    { inputSchema: fromJsonSchema<{ order: string }>({ type: 'object', properties: { order: { type: 'string' } } }) },
    ({ order }, ctx): CallToolResult | InputRequiredResult => {
      const outcome = round(ctx, order);
      return 'question' in outcome ? outcome.question : { content: [{ type: 'text', text: outcome.text }] };
    },
  );
  server.registerPrompt('terms', {}, (ctx) => {
    const outcome = round(ctx, 'terms');
    if ('question' in outcome) return outcome.question;
    return { messages: [{ role: 'user', content: { type: 'text', text: outcome.text } }] };
  });
  server.registerResource(
    'note',
    new ResourceTemplate('note:{id}', { list: undefined }),
    {},
    (uri, _variables, ctx) => {
      const outcome = round(ctx, uri.href);
      return 'question' in outcome ? outcome.question : { contents: [{ uri: uri.href, text: outcome.text }] };
    },
  );
}
