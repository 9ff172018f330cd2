import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);

test('a protected server and its transport keep fast properties in V8', async () => {
  const program = fileURLToPath(new URL('server-shape.ts', import.meta.url));
  const { stdout } = await run(process.execPath, ['--allow-natives-syntax', program], { timeout: 60_000 });
  expect(stdout).toBe('server true, its McpServer true, transport true\n');
});
