import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { main, prepare, root, run, toolEnvironment } from './prepare.mjs';

const help = `Usage: npm test                    checks, then every test
       npm test -- FILTER ...      only the test files whose path contains a FILTER, no checks
       npm test -- -t NAME ...     options are handed to vitest

The last line adds everything up: one test or one check is one.`;

const turbo = (task) => ['turbo', 'run', task, '--output-logs=errors-only', '--concurrency=2'];
const checks = {
  format: ['biome', 'ci', '--colors=off', '.'],
  lint: ['oxlint', '--type-aware', '--deny-warnings'],
  typecheck: turbo('typecheck'),
  packages: turbo('check'),
  boundaries: ['turbo', 'boundaries'],
  unused: ['knip'],
  prose: ['npm', 'run', '--silent', 'prose'],
};
const plain = { ...toolEnvironment, NO_COLOR: '1', FORCE_COLOR: '0' };
// Most tests wait for servers: on two cores two files at a time take little more than half the time of one. `maxWorkers`
// in the configuration does not reach the projects.
const workers = String(Math.max(2, availableParallelism() - 1));
const twoAtATime = { ...toolEnvironment, VITEST_MAX_WORKERS: process.env.VITEST_MAX_WORKERS ?? workers };
const report = join('.cache', 'test-results.json');

async function runCheck(name, [command, ...args]) {
  const started = Date.now();
  const { code, output } = await run(command, args, { env: plain });
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${code === 0 ? '✓' : '✗'} ${name} ${seconds} s\n`);
  if (code !== 0) process.stdout.write(`${output.trimEnd()}\n\n`);
  return code === 0;
}

async function runTests(args) {
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(join(root, report), { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { code } = await run('vitest', ['run', ...reporters, ...args], { stdio: 'inherit', env: twoAtATime });
  return { code, files: readReport() };
}

function readReport() {
  try {
    return JSON.parse(readFileSync(join(root, report), 'utf8')).testResults;
  } catch {
    return undefined; // vitest ended before it could report: its exit code counts as the failure
  }
}

function countTests({ code, files = [] }) {
  const tests = files.flatMap((file) => file.assertionResults);
  const passed = tests.filter((test) => test.status === 'passed').length;
  // A file that does not load, or whose hooks fail, has no failed test of its own.
  const broken = files.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  const failed = tests.filter((test) => test.status === 'failed').length + broken.length;
  const skipped = tests.filter((test) => !['passed', 'failed'].includes(test.status));
  const nothingRan = passed + failed === 0;
  if (nothingRan) process.stdout.write('No test ran.\n');
  return {
    passed,
    failed: failed === 0 && (code !== 0 || nothingRan) ? 1 : failed,
    skipped: skipped.map((test) => test.fullName),
  };
}

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  await prepare();
  const outcomes = [];
  if (args.length === 0) {
    for (const [name, command] of Object.entries(checks)) outcomes.push(await runCheck(name, command));
  }
  const tests = countTests(await runTests(args));
  const passed = tests.passed + outcomes.filter((ok) => ok).length;
  const failed = tests.failed + outcomes.filter((ok) => !ok).length;
  if (process.env.CI === 'true') for (const title of tests.skipped) process.stdout.write(`skipped: ${title}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed, ${tests.skipped.length} skipped\n`);
  return failed === 0 ? 0 : 1;
});
