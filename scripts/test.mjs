import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { main, prepare, root, run, toolEnvironment } from './prepare.mjs';
import { TIER_LINES, testFiles, tierOf } from './tiers.mjs';

const help = `Usage: npm test                    all checks, and the tests that need no server: a few minutes
       npm run test:services       the tests with emulators, stores and fleets of processes
       npm run test:all            all checks and every test, also the long searches
       npm run test:all -- --shard 1/2   all checks, and every second test file: CI runs the rest on another machine
       npm test -- FILTER ...      only the test files whose path contains a FILTER, of every kind, no checks
       npm test -- -t NAME ...     options are passed to vitest
       npm run coverage            every test, no checks, with the coverage of lines, branches and functions

scripts/tiers.mjs says which command runs which file. The last line of the output counts all checks and tests.`;

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
/** Each run starts vitest once, for the files of its kinds. */
const tiers = {
  test: { checks: true, runs: [{ kinds: ['quick'] }], others: '`npm run test:services`, `npm run test:all`' },
  services: { checks: false, runs: [{ kinds: ['services'] }], others: '`npm test`, `npm run test:all`' },
  // Some tests of the second run compare times, which coverage changes.
  all: { checks: true, runs: [{ kinds: ['quick'], args: ['--coverage'] }, { kinds: ['services', 'long'] }] },
};
const plain = { ...toolEnvironment, NO_COLOR: '1', FORCE_COLOR: '0' };
// Most tests wait for servers and processes. With three files for each core, all cores are busy all the time.
// `maxWorkers` in the configuration does not reach the projects.
const workers = process.env.VITEST_MAX_WORKERS ?? String(availableParallelism() * 3);
const report = join('.cache', 'test-results.json');
const errorReport = join('.cache', 'test-errors.json');
/**
 * Cache of compiled modules for the hundreds of processes of a run: compiling takes a third of the start of a process.
 */
const compiled = join(root, '.cache', 'compiled');
const SLOWEST = 10;
const WHY = 300;

async function runCheck(name, [command, ...args]) {
  const started = Date.now();
  const { code, output } = await run(command, args, { env: plain });
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${code === 0 ? '✓' : '✗'} ${name} ${seconds} s\n`);
  if (code !== 0) process.stdout.write(`${output.trimEnd()}\n\n`);
  return code === 0;
}

async function runTests(tier, args) {
  mkdirSync(join(root, '.cache'), { recursive: true });
  for (const file of [report, errorReport]) rmSync(join(root, file), { force: true });
  // Prints one line for each file; the report lists slow tests within a file.
  const reporters = [
    '--reporter=default',
    '--slowTestThreshold=60000',
    '--reporter=json',
    `--outputFile.json=${report}`,
    '--reporter=./scripts/unhandled-errors.mjs',
  ];
  const env = {
    ...toolEnvironment,
    VITEST_MAX_WORKERS: workers,
    SEALRING_TESTS: tier,
    SEALRING_UNHANDLED_ERRORS: join(root, errorReport),
  };
  // Coverage is less exact with it.
  if (!args.some((arg) => arg.startsWith('--coverage'))) env.NODE_COMPILE_CACHE = compiled;
  const { code } = await run('vitest', ['run', ...reporters, ...args], { stdio: 'inherit', env });
  return { code, files: readReport(report)?.testResults, errors: readReport(errorReport) };
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8'));
  } catch {
    return undefined; // vitest ended before it could report: its exit code counts as the failure
  }
}

const isBroken = (file) =>
  // A file that does not load, or whose hooks fail, has no failed test.
  file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed');

function countTests({ code, files = [], errors = [] }) {
  const tests = files.flatMap((file) => file.assertionResults);
  const passed = tests.filter((test) => test.status === 'passed').length;
  const failed =
    tests.filter((test) => test.status === 'failed').length + files.filter(isBroken).length + errors.length;
  const skipped = tests.filter((test) => !['passed', 'failed'].includes(test.status));
  const nothingRan = passed + failed === 0;
  if (nothingRan) process.stdout.write('No test ran.\n');
  return {
    passed,
    failed: failed === 0 && (code !== 0 || nothingRan) ? 1 : failed,
    skipped: skipped.length,
  };
}

/** One line for each group of tests of a file that was skipped whole, with its number of tests. */
function tellSkipped(files = []) {
  for (const { name, assertionResults } of files) {
    const groups = new Map();
    for (const { ancestorTitles, title, status } of assertionResults) {
      const ran = ['passed', 'failed'].includes(status);
      for (const [depth] of [...ancestorTitles, title].entries()) {
        const path = [...ancestorTitles, title].slice(0, depth + 1).join(' > ');
        const group = groups.get(path) ?? { parent: ancestorTitles.slice(0, depth).join(' > '), ran: 0, skipped: 0 };
        groups.set(path, { ...group, ran: group.ran + Number(ran), skipped: group.skipped + Number(!ran) });
      }
    }
    for (const [path, { parent, ran, skipped }] of groups) {
      const isPartOfSkipped = groups.get(parent)?.ran === 0;
      if (ran > 0 || skipped === 0 || isPartOfSkipped) continue;
      process.stdout.write(`skipped: ${relative(root, name)} > ${path}${skipped > 1 ? ` (${skipped} tests)` : ''}\n`);
    }
  }
}

function tellSlowest(files = []) {
  const timed = files.map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1000 }));
  const slowest = timed.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  process.stdout.write(`\nThe ${slowest.length} slowest files:\n`);
  for (const { name, seconds } of slowest) {
    process.stdout.write(`${seconds.toFixed(1).padStart(8)} s  ${relative(root, name)}\n`);
  }
}

function tellFailures({ code, files = [], errors = [] }, failedChecks) {
  const failures = files.flatMap((file) => {
    const failed = file.assertionResults.filter((test) => test.status === 'failed');
    return isBroken(file) ? [{ file }] : failed.map((test) => ({ file, test }));
  });
  if (failures.length + failedChecks.length > 0) process.stdout.write('\nTo repeat a failure:\n');
  for (const command of failedChecks) process.stdout.write(`  npx ${command.join(' ')}\n`);
  for (const { file, test } of failures) {
    const only = test === undefined ? '' : ` -t ${quoted(escapedPattern(test.fullName))}`;
    process.stdout.write(`  npm test -- ${relative(root, file.name)}${only}\n`);
    const [why] = (test?.failureMessages?.[0] ?? file.message ?? '').trim().split('\n');
    process.stdout.write(`    ${why.slice(0, WHY)}\n`);
  }
  for (const { type, where, text } of errors) {
    process.stdout.write(`\n${type}, which belongs to no test${where === '' ? '' : ` (last: ${where})`}:\n${text}\n`);
  }
  if (code !== 0 && failures.length + errors.length === 0) {
    process.stdout.write(`\nvitest exited with code ${code}, and named neither a failed test nor an error.\n`);
  }
}

const escapedPattern = (text) => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function tierFrom(args) {
  if (args[0] === '--services') return 'services';
  if (args[0] === '--all') return 'all';
  return args.length === 0 ? 'test' : undefined;
}

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  await prepare();
  const name = tierFrom(args);
  const tier = tiers[name];
  const failedChecks = [];
  if (tier?.checks) {
    for (const [check, command] of Object.entries(checks)) {
      if (!(await runCheck(check, command))) failedChecks.push(command);
    }
  }
  const files = testFiles();
  const stale = TIER_LINES.filter((line) => !files.some((file) => file.startsWith(line)));
  if (stale.length > 0) throw new Error(`scripts/tiers.mjs names no test file with: ${stale.join(', ')}`);
  const runs = tier?.runs ?? [{}];
  const more = tier === undefined ? args : args.slice(1);
  const left = files.filter((file) => !runs.some(({ kinds = [tierOf(file)] }) => kinds.includes(tierOf(file))));
  // Otherwise it would grow by the temporary projects of every run.
  rmSync(compiled, { recursive: true, force: true, maxRetries: 3 });
  const ran = { code: 0, files: [], errors: [] };
  for (const { kinds = [], args: own = [] } of runs) {
    const chosen = files.filter((file) => kinds.includes(tierOf(file))).map((file) => join(root, file));
    const one = await runTests(name ?? 'all', [...chosen, ...own, ...more]);
    ran.code ||= one.code;
    ran.files.push(...(one.files ?? []));
    ran.errors.push(...(one.errors ?? []));
  }
  tellSlowest(ran.files);
  const tests = countTests(ran);
  const checked = tier?.checks ? Object.keys(checks).length : 0;
  const passed = tests.passed + checked - failedChecks.length;
  const failed = tests.failed + failedChecks.length;
  if (process.env.CI === 'true') tellSkipped(ran.files);
  tellFailures(ran, failedChecks);
  if (left.length > 0)
    process.stdout.write(`Left out: ${left.length} of ${files.length} test files, run by ${tier.others}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed, ${tests.skipped} skipped\n`);
  return failed === 0 ? 0 : 1;
});
