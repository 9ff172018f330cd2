import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  type McpServerFactory,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { createProtectedMcpServer, RequestStateSecurity } from '../src/index.ts';

const INFO = { name: 'sealring-conformance', version: '1.0.0' };
// Resources are announced although there is none: the everything-server of the suite answers all lists.
const OPTIONS = { capabilities: { tools: {}, prompts: {}, resources: {} } };

type ToolResult = CallToolResult | InputRequiredResult;

function ask(message: string, name: string, type: 'string' | 'boolean'): InputRequests[string] {
  const property = type === 'string' ? { type } : { type };
  const requestedSchema = { type: 'object' as const, properties: { [name]: property }, required: [name] };
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } };
}

function sample(text: string, maxTokens: number): InputRequests[string] {
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text } }];
  return { method: 'sampling/createMessage', params: { messages, maxTokens } };
}

const ROOTS: InputRequests[string] = { method: 'roots/list', params: {} };

const say = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

/** Sends `requests`, and runs when all of them are answered. */
function once(
  ctx: ServerContext,
  requests: InputRequests,
  requestState: string | undefined,
  done: (state: string | undefined) => ToolResult,
): ToolResult {
  const answers = ctx.mcpReq.inputResponses ?? {};
  const state = ctx.mcpReq.requestState<string>();
  const complete = Object.keys(requests).every((key) => Object.hasOwn(answers, key));
  if (complete && (requestState === undefined || state !== undefined)) return done(state);
  return inputRequired({ inputRequests: requests, ...(requestState === undefined ? {} : { requestState }) });
}

/** The tools and prompts of the `input-required-result-*` scenarios. The handlers trust their state. */
function register(server: McpServer): McpServer {
  const tool = (name: string, handle: (ctx: ServerContext) => ToolResult) =>
    server.registerTool(`test_input_required_result_${name}`, {}, handle);

  const askName = { user_name: ask('What is your name?', 'name', 'string') };
  tool('elicitation', (ctx) => {
    const content = acceptedContent<{ name: string }>(ctx.mcpReq.inputResponses, 'user_name');
    return content === undefined ? inputRequired({ inputRequests: askName }) : say(`Hello, ${content.name}!`);
  });
  const question = { capital_question: sample('What is the capital of France?', 100) };
  tool('sampling', (ctx) => once(ctx, question, undefined, () => say('answered')));
  tool('list_roots', (ctx) => once(ctx, { client_roots: ROOTS }, undefined, () => say('rooted')));
  const confirm = { confirm: ask('Please confirm', 'ok', 'boolean') };
  tool('request_state', (ctx) => once(ctx, confirm, 'confirming', (state) => say(`state-ok ${state}`)));
  tool('tampered_state', (ctx) => once(ctx, confirm, 'confirming', () => say('done')));
  const several = { ...askName, greeting: sample('Generate a greeting', 50), client_roots: ROOTS };
  tool('multiple_inputs', (ctx) => once(ctx, several, 'several', () => say('done')));
  tool('multi_round', (ctx) => {
    const second = { step2: ask('Step 2: What is your favorite color?', 'color', 'string') };
    if (ctx.mcpReq.requestState() === 'round-2') return once(ctx, second, 'round-2', () => say('done'));
    const first = { step1: ask('Step 1: What is your name?', 'name', 'string') };
    return once(ctx, first, 'round-1', () => inputRequired({ inputRequests: second, requestState: 'round-2' }));
  });
  tool('capabilities', (ctx) => {
    const declared = Object(Reflect.get(Object(ctx.mcpReq.envelope), CLIENT_CAPABILITIES_META_KEY));
    const requests = {
      ...(declared.sampling === undefined ? {} : { greeting: sample('Generate a greeting', 50) }),
      ...(declared.elicitation === undefined ? {} : askName),
    };
    return once(ctx, requests, undefined, () => say('done'));
  });
  server.registerPrompt('test_input_required_result_prompt', {}, (ctx) => {
    const requests = { user_context: ask('What context should the prompt use?', 'context', 'string') };
    const content = acceptedContent<{ context: string }>(ctx.mcpReq.inputResponses, 'user_context');
    if (content === undefined) return inputRequired({ inputRequests: requests });
    return { messages: [{ role: 'user', content: { type: 'text', text: content.context } }] };
  });
  return server;
}

/** The layer between the handlers and the wire; `none` shows that the run notices the difference. */
export type Protection = 'reject' | 're-elicit' | 're-elicit-any' | 'none';

/** The server of the scenarios' tools and prompts. */
export function scenarioFactory(protection: Protection): McpServerFactory {
  if (protection === 'none') return () => register(new McpServer(INFO, OPTIONS));
  const security = new RequestStateSecurity({
    keys: [Buffer.from('a key for conformance runs, 32 bytes')],
    onInvalid: protection,
  });
  return () => register(createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: OPTIONS }));
}
