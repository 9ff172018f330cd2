import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

const run = promisify(execFile);
const source = fileURLToPath(new URL('../../src/index.ts', import.meta.url));
const mcpd = fileURLToPath(new URL('../../src/mcpd/index.ts', import.meta.url));
const HEAD = `
  import { randomBytes } from 'node:crypto';
  import { McpServer } from '@modelcontextprotocol/server';
  const { createProtectedMcpServer, RequestStateSecurity } = await import(${JSON.stringify(source)});
  const { createMcpdRequestStateSecurity } = await import(${JSON.stringify(mcpd)});
  const security = new RequestStateSecurity({ keys: [randomBytes(32)] });
  const serverInfo = { name: 'a', version: '1.0.0' };
  const attach = () => createProtectedMcpServer({ McpServer, serverInfo, security });
`;

/** What a program prints on standard error; how often it warns of a policy without a server. */
async function warningsOf(program: string): Promise<number> {
  const args = ['--input-type=module', '--eval', HEAD + program];
  const { stderr } = await run(process.execPath, args, { cwd: fileURLToPath(new URL('.', import.meta.url)) });
  return stderr.split('SEALRING_UNATTACHED').length - 1;
}

describe('the warning for a policy that protects no server', () => {
  test.each([
    ['at the end of a program', '', 1],
    ['where it is ended', 'process.exit(0);', 1],
    ['once for several', 'new RequestStateSecurity({ keys: [randomBytes(32)] }); createMcpdRequestStateSecurity();', 1],
    ['not for one that is attached', 'attach();', 0],
    ['also beside one that is attached', 'attach(); new RequestStateSecurity({ keys: [randomBytes(32)] });', 1],
  ])('%s', async (_name, program, count) => {
    expect(await warningsOf(program)).toBe(count);
  });

  beforeEach(() => void vi.resetModules());
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test('is emitted after a minute, without keeping the process alive', async () => {
    vi.useFakeTimers();
    const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { expectAttachment, noteAttached } = await import('../../src/server/unattached-warning.ts');
    const [attached, waiting, other] = [{}, {}, {}];
    for (const security of [attached, waiting, other]) expectAttachment(security);
    noteAttached(attached);
    vi.advanceTimersByTime(59_999);
    expect(emitWarning).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_001);
    expectAttachment({});
    vi.advanceTimersByTime(120_000);
    expect(emitWarning.mock.calls).toMatchObject([
      [expect.stringContaining('createProtectedMcpServer'), { type: 'SealringWarning', code: 'SEALRING_UNATTACHED' }],
    ]);
  });
});
