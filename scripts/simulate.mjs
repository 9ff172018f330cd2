import { join } from 'node:path';
import { main, prepare, run } from './prepare.mjs';

await main(async () => {
  await prepare();
  // A fleet makes billions of short-lived promises and millions of errors: use a large young generation, and no stacks.
  const flags = [
    '--min-semi-space-size=512',
    '--max-semi-space-size=512',
    '--stack-trace-limit=0',
    '--disable-warning=SEALRING_WAITING',
  ];
  const args = [...flags, join('test', 'simulator', 'main.ts'), ...process.argv.slice(2)];
  const { code } = await run('node', args, { stdio: 'inherit' });
  return code;
});
