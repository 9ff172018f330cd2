import { main, prepare, run } from './prepare.mjs';

/*
 * node scripts/program.mjs FILE ARGUMENT ...
 *
 * Runs a program of this repository, after it has updated the dependencies and the build.
 */
await main(async () => {
  await prepare();
  const { code } = await run('node', process.argv.slice(2), { stdio: 'inherit' });
  return code;
});
