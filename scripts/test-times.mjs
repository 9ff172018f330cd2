import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { main, prepare, root, run } from './prepare.mjs';

// Measures the test commands, each as the median of three runs, and writes the table in CONTRIBUTING.md.

const help = `Usage: npm run test:times              measures the three commands, three times each: hours
       npm run test:times -- COMMAND ...  only these: test, test:services, test:all`;

const file = join(root, 'CONTRIBUTING.md');
const [begin, end] = ['<!-- times: npm run test:times -->\n', '<!-- /times -->'];
const COMMANDS = ['test', 'test:services', 'test:all'];
const RUNS = 3;
const row = /^\| `npm run (\S+)` \| (\S+) \| (\d+) \| (\d+) \|$/gm;

async function measure(command) {
  const times = [];
  let counted = '';
  for (let i = 1; i <= RUNS; i++) {
    const started = Date.now();
    const { code, output } = await run('npm', ['run', '--silent', command]);
    times.push((Date.now() - started) / 60_000);
    const last = output.trimEnd().split('\n').at(-1) ?? '';
    process.stdout.write(`npm run ${command}, run ${i} of ${RUNS}: ${times.at(-1).toFixed(1)} min, ${last}\n`);
    // A run that fails may end early.
    if (code !== 0) throw new Error(`npm run ${command} failed: nothing is written`);
    counted = /^(\d+) passed/.exec(last)?.[1] ?? '?';
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(RUNS / 2)];
  return { minutes: median.toFixed(1), tests: counted, cores: availableParallelism() };
}

function table(times) {
  const rows = COMMANDS.filter((command) => times.has(command)).map((command) => {
    const { minutes, tests, cores } = times.get(command);
    return `| \`npm run ${command}\` | ${minutes} | ${tests} | ${cores} |`;
  });
  return `\n| command | minutes, median of ${RUNS} | tests and checks | cores |\n|---|---:|---:|---:|\n${rows.join('\n')}\n\n`;
}

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  const wrong = args.filter((arg) => !COMMANDS.includes(arg));
  if (wrong.length > 0) throw new Error(`Unknown command ${wrong.join(', ')}\n${help}`);
  await prepare();
  const measured = new Map();
  for (const command of args.length > 0 ? args : COMMANDS) measured.set(command, await measure(command));
  // Read only now, because the runs take hours.
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`${file} has no place for the table`);
  const rows = Array.from(text.slice(from, to).matchAll(row), ([, command, minutes, tests, cores]) => [
    command,
    { minutes, tests, cores },
  ]);
  writeFileSync(file, text.slice(0, from) + table(new Map([...rows, ...measured])) + text.slice(to));
  return 0;
});
