import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { callTool, type ToolAnswer } from '../support/call-tool.ts';
import type { ServerSettings } from './server.ts';

/** How long a token is valid by the fast clock. */
export const LIFE_SECONDS = 4;

/** The one refusal. */
export const REFUSED = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
};

type Closing = (() => unknown)[];

/** Starts a server process, and adds the function that ends it to `closing`. Returns its address. */
async function serve(command: string, file: string, settings: ServerSettings, closing: Closing): Promise<string> {
  const program = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(command, [program, JSON.stringify(settings)], { stdio: ['pipe', 'pipe', 'inherit'] });
  closing.push(() => child.kill('SIGKILL'));
  const [port] = await once(createInterface({ input: child.stdout }), 'line');
  return `http://127.0.0.1:${String(port)}`;
}

export const serveTypeScript = (settings: ServerSettings, closing: Closing): Promise<string> =>
  serve(process.execPath, 'server.ts', settings, closing);
export const servePython = (python: string, settings: ServerSettings, closing: Closing): Promise<string> =>
  serve(python, 'server.py', settings, closing);

export const call = (url: string | undefined, requestState?: string): Promise<ToolAnswer> =>
  callTool(`${url}/mcp`, { name: 'refund', requestState });

/** A token that the server at `url` sealed. */
export async function mint(url: string | undefined): Promise<string> {
  const { requestState = '' } = (await call(url)).result ?? {};
  if (!requestState.startsWith('v1.')) throw new Error('the server sealed no token');
  return requestState;
}
