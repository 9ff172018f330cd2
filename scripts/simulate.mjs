import { join } from 'node:path';
import { main, prepare, run } from './prepare.mjs';

await main(async () => {
  await prepare();
  // A large young generation: a fleet makes short-lived promises by the billion.
  const args = ['--max-semi-space-size=256', join('test', 'simulator', 'main.ts'), ...process.argv.slice(2)];
  const { code } = await run('node', args, { stdio: 'inherit' });
  return code;
});
