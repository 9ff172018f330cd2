import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Server } from '@modelcontextprotocol/server';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FetchHandler } from '../../src/fetch/protect-fetch.ts';
import type { ProtectRequestStateOptions } from '../../src/server/attach.ts';
import type { RequestStateSecurity } from '../../src/server/security.ts';

const NOBODY: ProtectRequestStateOptions = { defaultAudience: null };
const handler: FetchHandler = () => new Response();
const source = fileURLToPath(new URL('../../src/index.ts', import.meta.url));

test('a program prints the warning if it ends while a policy protects no server', async () => {
  const program = `const { RequestStateSecurity } = await import(${JSON.stringify(source)});
    new RequestStateSecurity({ keys: [new Uint8Array(32).map((_, at) => at)] });`;
  const args = ['--input-type=module', '--eval', program];
  const { stderr } = await promisify(execFile)(process.execPath, args);
  expect(stderr.split('SEALRING_UNATTACHED')).toHaveLength(2);
});

describe('the warning for a policy that protects no server', () => {
  const emitWarning = vi.spyOn(process, 'emitWarning');
  let module: typeof import('../../src/server/unattached-warning.ts');
  let before: readonly unknown[];
  const atExit = () => process.listeners('exit').filter((listener) => !before.includes(listener));
  const warning = { code: 'SEALRING_UNATTACHED' };

  beforeEach(async () => {
    vi.useFakeTimers();
    emitWarning.mockReset().mockImplementation(() => {});
    before = process.listeners('exit');
    vi.resetModules();
    module = await import('../../src/server/unattached-warning.ts');
  });
  afterEach(() => {
    vi.useRealTimers();
    for (const listener of atExit()) process.off('exit', listener);
  });

  test('the warning is emitted after a minute, once for several policies, and not again', () => {
    const [attached, waiting, other] = [{}, {}, {}];
    for (const security of [attached, waiting, other]) module.expectAttachment(security);
    expect(atExit()).toHaveLength(1);
    module.noteAttached(attached);
    vi.advanceTimersByTime(59_999);
    expect(emitWarning).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_001);
    expect([atExit(), vi.getTimerCount()]).toEqual([[], 0]);
    module.expectAttachment({});
    expect([atExit(), vi.getTimerCount()]).toEqual([[], 0]);
    expect(emitWarning.mock.calls).toMatchObject([
      [expect.stringMatching(/createProtectedMcpServer.*first request$/), { ...warning, type: 'SealringWarning' }],
    ]);
  });

  test('the warning is emitted at the end of the process only if a policy is still unattached', () => {
    const [one, other] = [{}, {}];
    for (const security of [one, other]) module.expectAttachment(security);
    for (const security of [one, one, {}]) module.noteAttached(security);
    const emit = vi.spyOn(process, 'emit').mockReturnValue(process);
    for (const listener of atExit()) listener(0);
    const { calls } = emit.mock;
    emit.mockRestore();
    expect(calls).toMatchObject([['warning', { ...warning, name: 'SealringWarning' }]]);
    module.noteAttached(other);
    expect([atExit(), vi.getTimerCount()]).toEqual([[], 0]);
    module.expectAttachment({});
    expect(atExit()).toHaveLength(1);
  });

  test.each<[string, (mcp: typeof import('../../src/index.ts'), security: RequestStateSecurity) => unknown]>([
    [
      'protectRequestState',
      (mcp, security) => mcp.protectRequestState(new Server({ name: 'desk', version: '1.0.0' }), security, NOBODY),
    ],
    ['protectFetch', (mcp, security) => mcp.protectFetch(handler, security, { audience: null, bindPrincipal: null })],
  ])('%s cancels the warning for its policy', async (_name, protect) => {
    const mcp = await import('../../src/index.ts');
    const security = new mcp.RequestStateSecurity({ keys: ['a key of thirty-two bytes or more, for tests'] });
    expect(vi.getTimerCount()).toBe(1);
    protect(mcp, security);
    expect([atExit(), vi.getTimerCount()]).toEqual([[], 0]);
  });

  test('the warning is omitted on a runtime that has no timers outside a request', () => {
    vi.stubGlobal('setTimeout', () => {
      throw new Error('no timers');
    });
    expect(() => module.expectAttachment({})).not.toThrow();
    vi.unstubAllGlobals();
  });
});
