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

/** The reports of the check for the text of a file, by line. */
function check(text: string, file = 'page.md'): ReadonlyMap<number, readonly string[]> {
  const args = ['scripts/prose/check.mjs', '--stdin', file];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, input: text, encoding: 'utf8' });
  if (!stdout.startsWith('[')) throw new Error(stderr);
  const findings: readonly Finding[] = JSON.parse(stdout);
  const found = new Map<number, string[]>();
  for (const { line, message } of findings) found.set(line, [...(found.get(line) ?? []), message]);
  return found;
}

/** Each sentence on its own line, as a paragraph. */
function checkEach(sentences: readonly string[]): readonly (readonly string[])[] {
  const found = check(sentences.map((sentence) => `${sentence}\n`).join('\n'));
  return sentences.map((_, index) => found.get(index * 2 + 1) ?? []);
}

describe('the prose check', () => {
  test('reports each listed word in the sentences that the list gives for it', () => {
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

  test('accepts each listed word in another sense', () => {
    const sentences = words.flatMap(({ passes }) => passes);
    expect(sentences.length).toBeGreaterThanOrEqual(words.length);
    expect(checkEach(sentences).map((messages, index) => [sentences[index], messages])).toEqual(
      sentences.map((sentence) => [sentence, []]),
    );
  });

  test('reads headings, table cells, list items, link texts and wrapped lines of Markdown', () => {
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

  test('reads comments, messages and markup of a source file', () => {
    const source = [
      '/**',
      ' * A key in the',
      ' * name of its owner. `rights`, {@link rights}',
      ' *',
      ' * @throws {TypeError} for a broken law.',
      ' */',
      "import { laws } from 'its-laws';",
      '// The rights of a member.',
      "export const rights = 'rights';",
      "export const a = 'no such rights';",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source has the placeholder
      'export const b = `${a} has no rights here`;',
      'export const c = `<p class="open it">it was ${a} told</p>`;',
      'export const script = `request.open();\nlaw of;`;',
    ];
    expect([...check(source.join('\n'), 'packages/x/src/x.ts').keys()]).toEqual([2, 5, 8, 10, 11, 12]);
  });

  test('reads the titles of tests, and nothing else in a test file', () => {
    const source = [
      "describe('the laws of a ring', () => {",
      "  test('it has rights', () => expect(told()).toBe('it was told'));",
      "  test.skipIf(isTold).each(['the law'])('%s: rights', run);",
      '  // The rights of a member.',
      '});',
    ];
    expect([...check(source.join('\n'), 'packages/x/test/x.test.ts').keys()]).toEqual([1, 2, 3]);
  });

  test('reads comments and strings of Python, Terraform, YAML and JSON, without the values in them', () => {
    const script = [
      '# The rights of a member.',
      'title = "it was told"',
      'rights = "rights"',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source has the placeholder
      'meaning = "A member ${rights.told} unseals"',
      '"""A docstring',
      'tells the law of ``rights``."""',
      'description: It was told.',
      "raise ValueError(f'{told} must be a number')",
    ];
    for (const name of ['x.py', 'x.tf', 'x.json', 'x.yml']) {
      expect([name, ...check(script.join('\n'), name).keys()]).toEqual([name, 1, 2, 6, 7]);
    }
  });

  test('reads the text of a picture', () => {
    const picture = ['<svg>', '<title>laws</title>', '<text data-law="law">two rights</text>', '</svg>'];
    expect([...check(picture.join('\n'), 'docs/images/x.svg').keys()]).toEqual([2, 3]);
  });
});

test('the glossary lists every word that is not used, with its replacement', () => {
  const rows = [...glossary.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, not, instead]) => ({ not, instead }));
  expect(rows).toEqual(words.map(({ not, instead }) => ({ not, instead })));
});
