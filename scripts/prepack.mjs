import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { main, prepare, root, run } from './prepare.mjs';

// Runs before `npm pack` and `npm publish` in a package, so that no tarball has an old build, or none.

await main(async () => {
  if (!existsSync(join(root, 'node_modules', '.bin', 'tsc'))) await prepare();
  const { code, output } = await run('tsc', ['-b', process.cwd()]);
  if (code !== 0) throw new Error(`The build failed\n${output}`);
  return 0;
});
