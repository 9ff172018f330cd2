import { join } from 'node:path';
import { main, prepare, run } from './prepare.mjs';

await main(async () => {
  await prepare();
  const args = [join('test', 'mutation', 'main.ts'), ...process.argv.slice(2)];
  const { code } = await run('node', args, { stdio: 'inherit' });
  return code;
});
