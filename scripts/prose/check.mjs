import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLinter, loadLinterFormatter, loadTextlintrc } from 'textlint';
import unusedWords from './rule.mjs';
import { plugins } from './source.mjs';

const help = `Usage: node scripts/prose/check.mjs                 all prose of the repository
       node scripts/prose/check.mjs FILE ...        these files
       node scripts/prose/check.mjs --stdin FILE    the standard input, as if it were FILE; findings as JSON`;

const root = fileURLToPath(new URL('../..', import.meta.url));
const FILES = [
  '*.md',
  '.github/**/*.yml',
  'docs/**/*.{md,svg,ts,py,yaml}',
  'docs/examples/**/*.json',
  'packages/*/README.md',
  'packages/*/docs/*.md',
  'packages/otel/observability/*',
  'packages/*/src/**/*.{ts,py}',
  'packages/*/examples/**/*.{ts,py}',
  'packages/*/test/**/*.ts',
  'scripts/**/*.mjs',
  'terraform/**/*.{md,tf,hcl}',
  'test/**/*.ts',
];

const isOurs = (path) => !['node_modules', 'dist'].includes(basename(path));

const builtIn = await loadTextlintrc();
const rules = [{ ruleId: 'words', rule: unusedWords }];
const linter = createLinter({
  cwd: root,
  ignoreFilePath: '.textlintignore',
  descriptor: builtIn.concat(builtIn.shallowMerge({ rules, plugins })),
});
const args = process.argv.slice(2);

if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(`${help}\n`);
} else if (args[0] === '--stdin' && args.length === 2) {
  const { messages } = await linter.lintText(readFileSync(0, 'utf8'), args[1]);
  process.stdout.write(`${JSON.stringify(messages.map(({ line, message }) => ({ line, message })))}\n`);
} else {
  const all = globSync(FILES, { cwd: root, exclude: (path) => !isOurs(path) });
  const results = await linter.lintFiles(args.length > 0 ? args : all);
  const formatter = await loadLinterFormatter({ formatterName: 'stylish', color: false });
  const found = results.some(({ messages }) => messages.length > 0);
  if (found) process.stdout.write(formatter.format(results));
  process.exitCode = found ? 1 : 0;
}
