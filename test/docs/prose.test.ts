import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

interface UnusedWord {
  readonly not: string;
  readonly instead: string;
  readonly fails: readonly string[];
  readonly passes: readonly string[];
}

interface Finding {
  readonly line: number;
  readonly message: string;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const words: readonly UnusedWord[] = JSON.parse(textOf('scripts/prose/words.json'));
const glossary = textOf('docs/glossary.md');

/** What the check reports for a Markdown text, by line. */
function check(markdown: string): ReadonlyMap<number, readonly string[]> {
  const textlint = join(root, 'node_modules/.bin/textlint');
  const args = ['--rulesdir', 'scripts/prose/rules', '--format', 'json', '--stdin', '--stdin-filename', 'page.md'];
  const { stdout, stderr } = spawnSync(textlint, args, { cwd: root, input: markdown, encoding: 'utf8' });
  if (!stdout.startsWith('[')) throw new Error(stderr);
  const [{ messages }]: [{ messages: readonly Finding[] }] = JSON.parse(stdout);
  const found = new Map<number, string[]>();
  for (const { line, message } of messages) found.set(line, [...(found.get(line) ?? []), message]);
  return found;
}

/** Each sentence on a line of its own, as a paragraph of its own. */
function checkEach(sentences: readonly string[]): readonly (readonly string[])[] {
  const found = check(sentences.map((sentence) => `${sentence}\n`).join('\n'));
  return sentences.map((_, index) => found.get(index * 2 + 1) ?? []);
}

describe('the prose check', () => {
  test('fails once for each listed word, wherever the list says that it must', () => {
    const cases = words.flatMap(({ not, instead, fails }) => fails.map((sentence) => ({ not, instead, sentence })));
    expect(cases.length).toBeGreaterThan(words.length);
    expect(words.filter(({ fails }) => fails.length === 0)).toEqual([]);
    const found = checkEach(cases.map(({ sentence }) => sentence));
    const wrong = cases.filter(
      ({ not, instead }, index) =>
        (found[index] ?? []).filter((message) => message.endsWith(`${not} is not used here. Write: ${instead}`))
          .length === 0,
    );
    expect(wrong).toEqual([]);
  });

  test('passes each sentence that uses a listed word in another sense', () => {
    const sentences = words.flatMap(({ passes }) => passes);
    expect(sentences.length).toBeGreaterThanOrEqual(words.length);
    expect(checkEach(sentences).map((messages, index) => [sentences[index], messages])).toEqual(
      sentences.map((sentence) => [sentence, []]),
    );
  });

  test('reads headings, table cells, list items, link texts and wrapped lines', () => {
    const markdown = [
      '# The laws',
      '',
      '| rights |',
      '|---|',
      '| told |',
      '',
      '* a [proof](x.md) and *his*',
      '',
      'in the',
      'name of',
    ];
    expect([...check(markdown.join('\n')).keys()]).toEqual([1, 3, 5, 7, 9]);
  });

  test('skips code, addresses, quotations and requirements of the conformance kit', () => {
    const markdown = [
      '`rights` and [a page](laws.md#rights), “it was told”',
      '',
      '```sh',
      'echo rights',
      '```',
      '',
      '| id | sentence |',
      '|---|---|',
      '| `CODEC-X` | It opens tokens. |',
    ];
    expect([...check(markdown.join('\n'))]).toEqual([]);
  });
});

test('the glossary lists every word that is not used, with what to write', () => {
  const rows = [...glossary.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, not, instead]) => ({ not, instead }));
  expect(rows).toEqual(words.map(({ not, instead }) => ({ not, instead })));
});
