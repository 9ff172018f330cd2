import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type FuzzRecord, type FuzzRun, publishTables } from '../support/hardening-tables.ts';
import { extendCorpus, readCorpus } from './corpus.ts';
import { Coverage } from './coverage.ts';
import { fuzz } from './fuzz.ts';
import { allParsers } from './parsers.ts';

/*
 * Long run: `npm run fuzz -- --inputs 10000000`. One parser: `npm run fuzz -- claims`. Adds what it finds to the
 * corpus, and its result to test/fuzz/record.json and the hardening guide.
 */
const RECORD = new URL('record.json', import.meta.url);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { inputs: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
});
const inputs = Number(values.inputs);
const seed = Number(values.seed);
// Stacks take a quarter of the time of a refusal, and no one reads them.
Error.stackTraceLimit = 0;
// Before the parsers: functions that were compiled earlier are counted as a whole only.
const coverage = new Coverage();
const parsers = await allParsers();
const unknown = positionals.find((name) => !parsers.some((parser) => parser.name === name));
if (unknown !== undefined || !Number.isSafeInteger(inputs) || !Number.isSafeInteger(seed)) {
  process.stderr.write(
    `Usage: npm run fuzz -- [--inputs N] [--seed N] [PARSER ...]\nParsers: ${parsers.map(({ name }) => name).join(', ')}\n`,
  );
  process.exit(2);
}

for (const parser of parsers.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  const began = performance.now();
  const { accepted, kept, failures } = await fuzz(parser, coverage, { inputs, seed, corpus: readCorpus(parser.name) });
  const seconds = Math.round((performance.now() - began) / 1_000);
  extendCorpus(parser.name, kept);
  const run: FuzzRun = { inputs, seed, seconds, accepted, found: kept.length, failures: failures.length };
  record(parser.name, run);
  process.stdout.write(`${parser.name}: ${JSON.stringify(run)}\n`);
  for (const { input, what } of failures.slice(0, 10)) {
    process.stdout.write(`  ${what}: ${Buffer.from(input).toString('base64').slice(0, 2_000)}\n`);
    process.exitCode = 1;
  }
}
publishTables();
process.exit();

/** A run with another seed continues where the ones before it ended: it starts with their corpus. */
function record(name: string, run: FuzzRun): void {
  const all: Record<string, FuzzRecord> = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, 'utf8')) : {};
  const others = (all[name]?.runs ?? []).filter(({ seed: other }) => other !== run.seed);
  all[name] = { date: new Date().toISOString().slice(0, 10), node: process.version, runs: [...others, run] };
  writeFileSync(RECORD, `${JSON.stringify(all, null, 2)}\n`);
}
