import { join } from 'node:path';
import { main, prepare, run } from './prepare.mjs';

await main(async () => {
  await prepare();
  const { code } = await run('node', [join('docs', 'site', 'build.ts'), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  return code;
});
