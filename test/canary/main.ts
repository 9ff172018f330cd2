import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canaryEnvironment } from './environment.ts';
import { sightings } from './search.ts';

/*
 * Runs the tests once with recognizable keys, keeps all output, and searches it (F21):
 *
 *   npm run canary -- --project core --project mcp
 *
 * The arguments are vitest's. All output is in .cache/canary.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, '.cache');
const KEPT = join(CACHE, 'canary');

rmSync(KEPT, { recursive: true, force: true });
mkdirSync(KEPT, { recursive: true });
const mark = randomBytes(8);
const began = Date.now();
const reporters = ['json', 'junit'];
const outputs = reporters.map((name) => `--outputFile.${name}=${join(KEPT, `report.${name}`)}`);
const args = [
  join(ROOT, 'node_modules/vitest/vitest.mjs'),
  'run',
  '--reporter=verbose',
  ...reporters.map((name) => `--reporter=${name}`),
  ...outputs,
  ...process.argv.slice(2),
];
const [out, err] = ['stdout.txt', 'stderr.txt'].map((name) => openSync(join(KEPT, name), 'w'));
const child = spawn(process.execPath, args, {
  cwd: ROOT,
  env: canaryEnvironment(mark),
  stdio: ['ignore', out, err],
});
// A server's log is deleted when the server ends: a second name keeps it.
const watch = setInterval(keepLogs, 250);
const code = await new Promise<number>((resolve) => child.once('exit', (exit) => resolve(exit ?? 1)));
clearInterval(watch);
keepLogs();

const files = readdirSync(KEPT, { recursive: true, encoding: 'utf8' })
  .map((name) => join(KEPT, name))
  .filter((file) => statSync(file).isFile());
const found = sightings(mark, files);
for (const { file, form, around } of found) process.stdout.write(`${file}: ${form}, after: ${around}\n`);
const size = files.reduce((sum, file) => sum + statSync(file).size, 0);
process.stdout.write(
  `tests ended with ${code}; ${files.length} outputs of ${size} bytes searched, ${found.length} sightings\n`,
);
process.exitCode = found.length === 0 && code === 0 ? 0 : 1;

function keepLogs(): void {
  for (const name of readdirSync(CACHE)) {
    const log = join(CACHE, name);
    if (!name.endsWith('.log')) continue;
    try {
      const { mtimeMs, ino } = statSync(log);
      if (mtimeMs >= began) linkSync(log, join(KEPT, `${ino}-${name}`));
    } catch (error) {
      // The file was removed meanwhile, or was kept already.
      if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}
