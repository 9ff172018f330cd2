import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { main, prepare, root, run, toolEnvironment } from './prepare.mjs';
import { testFiles, tierOf } from './tiers.mjs';

const help = `Usage: npm run test:flaky                   runs each quick test file 20 times, with every core busy
       npm run test:flaky -- FILTER ...     only the test files whose path contains a FILTER, of every kind
       npm run test:flaky -- --runs 5 ...   another number of runs

Lists the tests that failed in some runs. Exits with code 1 if there are any.`;

const RUNS = 20;
const report = join('.cache', 'flaky-results.json');

function readArguments(args) {
  const at = args.indexOf('--runs');
  const runs = at < 0 ? RUNS : Number(args[at + 1]);
  if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs needs a number of runs\n${help}`);
  return { runs, filters: at < 0 ? args : args.toSpliced(at, 2) };
}

/** One loop for each core, as in a second build. */
function keepCoresBusy() {
  const loops = Array.from({ length: availableParallelism() }, () =>
    // It ends with this process, however this process ends.
    spawn(
      process.execPath,
      [
        '-e',
        'process.stdin.on("end", () => process.exit()).resume(); (function loop() { const end = performance.now() + 50; while (performance.now() < end); setImmediate(loop); })()',
      ],
      {
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    ),
  );
  return () => {
    for (const loop of loops) loop.kill();
  };
}

async function runOnce(files) {
  rmSync(join(root, report), { force: true });
  const args = ['run', '--reporter=json', `--outputFile.json=${report}`, ...files.map((file) => join(root, file))];
  const { code, output } = await run('vitest', args, { env: { ...toolEnvironment, NO_COLOR: '1' } });
  let results;
  try {
    results = JSON.parse(readFileSync(join(root, report), 'utf8')).testResults;
  } catch {
    throw new Error(`vitest ended with ${code} and without a report\n${output}`);
  }
  const failures = results.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    const file = relative(root, name);
    // A file that does not load, or whose hooks fail, has no failed test.
    if (status === 'failed' && failed.length === 0) return [{ test: `${file}: the file itself`, why: message }];
    return failed.map(({ fullName, failureMessages }) => ({ test: `${file}: ${fullName}`, why: failureMessages[0] }));
  });
  if (code !== 0 && failures.length === 0) failures.push({ test: 'an error outside of any test', why: output.trim() });
  return failures;
}

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  const { runs, filters } = readArguments(args);
  const isWanted = (file) =>
    filters.length === 0 ? tierOf(file) === 'quick' : filters.some((filter) => file.includes(filter));
  const files = testFiles().filter(isWanted);
  if (files.length === 0) throw new Error('No test file has such a path.');
  await prepare();
  mkdirSync(join(root, '.cache'), { recursive: true });
  const flaky = new Map();
  const stop = keepCoresBusy();
  try {
    for (let i = 1; i <= runs; i++) {
      const started = Date.now();
      const failures = await runOnce(files);
      for (const { test, why } of failures) flaky.set(test, [...(flaky.get(test) ?? []), why]);
      const seconds = ((Date.now() - started) / 1000).toFixed(1);
      process.stdout.write(`run ${i} of ${runs}: ${files.length} files, ${failures.length} failures, ${seconds} s\n`);
    }
  } finally {
    stop();
  }
  for (const [test, reasons] of flaky) {
    process.stdout.write(`\nfailed in ${reasons.length} of ${runs} runs: ${test}\n${reasons[0]}\n`);
  }
  process.stdout.write(`\n${files.length} files, ${runs} runs each: ${flaky.size} flaky tests\n`);
  return flaky.size === 0 ? 0 : 1;
});
