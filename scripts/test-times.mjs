import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { main, prepare, root, run } from './prepare.mjs';

// Measures the test commands, each as the median of several runs, and writes the table in CONTRIBUTING.md.

const help = `Usage: npm run test:times              measures the three commands, three times each: hours
       npm run test:times -- COMMAND ...  only these: test, test:services, test:all
       npm run test:times -- --runs N ... N times each: 1 to 9, an odd number`;

const file = join(root, 'CONTRIBUTING.md');
const [begin, end] = ['<!-- times: npm run test:times -->\n', '<!-- /times -->'];
const COMMANDS = ['test', 'test:services', 'test:all'];
const row = /^\| `npm run (\S+)` \| (\S+) \| (\d+) \| (\d+) \| (\d+) \|$/gm;

async function measure(command, runs) {
  const times = [];
  let counted = '';
  for (let i = 1; i <= runs; i++) {
    const started = Date.now();
    const { code, output } = await run('npm', ['run', '--silent', command], { isShown: true });
    times.push((Date.now() - started) / 60_000);
    const last = output.trimEnd().split('\n').at(-1) ?? '';
    process.stdout.write(`npm run ${command}, run ${i} of ${runs}: ${times.at(-1).toFixed(1)} min, ${last}\n`);
    // A run that fails may end early.
    if (code !== 0) throw new Error(`npm run ${command} failed: nothing is written`);
    counted = /^(\d+) passed/.exec(last)?.[1] ?? '?';
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(runs / 2)];
  return { minutes: median.toFixed(1), runs, tests: counted, cores: availableParallelism() };
}

function table(times) {
  const rows = COMMANDS.filter((command) => times.has(command)).map((command) => {
    const { minutes, runs, tests, cores } = times.get(command);
    return `| \`npm run ${command}\` | ${minutes} | ${runs} | ${tests} | ${cores} |`;
  });
  return `\n| command | minutes, median | runs | tests and checks | cores |\n|---|---:|---:|---:|---:|\n${rows.join('\n')}\n\n`;
}

await main(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' }, runs: { type: 'string', default: '3' } },
  });
  if (values.help) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  const wrong = positionals.filter((command) => !COMMANDS.includes(command));
  if (wrong.length > 0) throw new Error(`Unknown command ${wrong.join(', ')}\n${help}`);
  if (!/^[13579]$/.test(values.runs))
    throw new Error(`--runs must be an odd number up to 9, not ${values.runs}\n${help}`);
  await prepare();
  const measured = new Map();
  for (const command of positionals.length > 0 ? positionals : COMMANDS) {
    measured.set(command, await measure(command, Number(values.runs)));
  }
  // The file is read only now, because the runs take hours.
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`${file} has no place for the table`);
  const rows = Array.from(text.slice(from, to).matchAll(row), ([, command, minutes, runs, tests, cores]) => [
    command,
    { minutes, runs, tests, cores },
  ]);
  writeFileSync(file, text.slice(0, from) + table(new Map([...rows, ...measured])) + text.slice(to));
  return 0;
});
