import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { main, prepare, root, run } from './prepare.mjs';

const job = join('docs', 'examples', 'main-job', 'main.ts');

await main(async () => {
  if (!existsSync(join(root, job))) throw new Error(`${job} is missing`);
  await prepare();
  const { code } = await run('node', [job, ...process.argv.slice(2)], { stdio: 'inherit' });
  return code;
});
