import { Client, type Transport } from '@modelcontextprotocol/client';
import type { Answer } from '../support/served.ts';
import type { Era } from './variants.ts';

/** The official client, with a record of its transport. */
export interface Guest extends AsyncDisposable {
  readonly client: Client;
  readonly wire: readonly unknown[];
  /** Sends one request with the official client, and returns the answer as it was on the wire. */
  ask(method: Carrier, params: Record<string, unknown>, options?: { readonly signal?: AbortSignal }): Promise<Answer>;
}

export type Carrier = 'tools/call' | 'prompts/get' | 'resources/read';

export interface GuestOptions {
  /** Whether the client answers questions and repeats the call by itself. Default: true. */
  readonly goesOn?: boolean;
}

/** Connects. Answers yes to every question. */
export async function guestAt(transport: Transport, era: Era, { goesOn = true }: GuestOptions = {}): Promise<Guest> {
  const client = new Client(
    { name: 'guest', version: '1.0.0' },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: era.revision === '2026-07-28' ? { pin: era.revision } : 'legacy' },
      inputRequired: { autoFulfill: goesOn },
    },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
  await client.connect(transport);
  const wire: unknown[] = [];
  // The client drops members that are not part of its era, so `extra` joins the message later.
  let extra: Record<string, unknown> = {};
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    const params: unknown = Reflect.get(message, 'params');
    if (typeof params === 'object' && params !== null) Object.assign(params, extra);
    extra = {};
    wire.push(message);
    await send(message, options);
  };
  const deliver = transport.onmessage;
  const record: typeof deliver = (message, from) => {
    wire.push(message);
    deliver?.(message, from);
  };
  Object.assign(transport, { onmessage: record });
  return {
    client,
    wire,
    async ask(method, { requestState, inputResponses, ...params }, options) {
      if (requestState !== undefined) extra = { requestState, inputResponses };
      const before = wire.length;
      const { signal } = options ?? {};
      await Promise.allSettled([
        client.request({ method, params: Object(params) }, signal === undefined ? {} : { signal }),
      ]);
      const id: unknown = Reflect.get(Object(wire[before]), 'id');
      const answer = wire.slice(before + 1).find((message) => isAnswer(message) && message.id === id);
      if (!isAnswer(answer)) throw new Error(`no answer to ${method} on the wire`);
      return answer;
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function isAnswer(message: unknown): message is Answer {
  return (
    typeof message === 'object' && message !== null && 'id' in message && ('result' in message || 'error' in message)
  );
}
