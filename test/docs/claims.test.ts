import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Claim, readClaims, unlisted, wrongWith } from './claims.ts';
import { writtenTests } from './written-tests.ts';

const ROOT = join(import.meta.dirname, '../..');
const LEAST = 150;
/** Pages that consist mostly of tables, which other tests compare with records or sources. */
const NOT_HELD = new Set(['hardening.md', 'python-parity.md']);

const textOf = (path: string): string | undefined =>
  existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), 'utf8') : undefined;

const { claims, exemptions, unread } = readClaims(textOf('docs/claims.md') ?? '');
const held = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs/guides'))
    .filter((name) => name.endsWith('.md') && !NOT_HELD.has(name))
    .map((name) => `docs/guides/${name}`),
];

const sources = new Map<string, ReturnType<typeof writtenTests> | undefined>();
function testsOf(file: string): ReturnType<typeof writtenTests> | undefined {
  if (!sources.has(file)) {
    const source = textOf(file);
    sources.set(file, source === undefined ? undefined : writtenTests(source));
  }
  return sources.get(file);
}

describe('the claims of the documentation', () => {
  test(`the page has at least ${LEAST} claims, and every row of their tables can be read`, () => {
    expect(unread).toEqual([]);
    expect(claims.length).toBeGreaterThanOrEqual(LEAST);
    const rows = claims.map(({ document, quote, title }) => JSON.stringify([document, quote, title]));
    expect(rows.filter((row, i) => rows.indexOf(row) !== i)).toEqual([]);
  });

  test('every claim is quoted as it is in its document, and names a test that exists and runs', () => {
    const wrong = claims.map(
      (claim) => [claim, wrongWith(claim, textOf(claim.document), testsOf(claim.file))] as const,
    );
    expect(
      wrong
        .filter(([, reasons]) => reasons.length > 0)
        .map(
          ([{ document, quote, file, title }, reasons]) =>
            `${reasons.join(', ')}: ${document} “${quote}”, ${file} “${title}”`,
        ),
    ).toEqual([]);
  });

  test.each(held)('every sentence of %s that has a number or allows no exception is listed', (document) => {
    const quotes = [...claims, ...exemptions].filter((each) => each.document === document).map(({ quote }) => quote);
    expect(unlisted(textOf(document) ?? '', quotes)).toEqual([]);
  });

  test('every exempt sentence is in its document', () => {
    const gone = exemptions.filter(
      ({ document, quote }) => textOf(document)?.replaceAll(/\s+/g, ' ').includes(quote) !== true,
    );
    expect(gone).toEqual([]);
  });
});

describe('a wrong list of claims', () => {
  const document = '# Page\n\nHeld.\n\n## Limits\n\nIt is never\nmore than 5 s. It is red.\n';
  const comment = '/**\n * It is never\n * more than 5 s.\n */\n';
  const row = '| It is short. | [Limits](../a.md#limits): “never more than 5 s” | `a.test.ts`: “is \\| short” |';
  const tests = writtenTests("test('is | short', () => {});");
  const [claim] = readClaims(row).claims as [Claim];

  test('a wrong claim is distinguished from a right one', () => {
    expect(claim).toMatchObject({
      document: 'a.md',
      section: 'limits',
      quote: 'never more than 5 s',
      title: 'is | short',
    });
    expect(wrongWith(claim, document, tests)).toEqual([]);
    expect(wrongWith({ ...claim, section: '' }, comment, tests)).toEqual([]);
  });

  test('a row of claims that cannot be read is reported', () => {
    expect(readClaims(row.replace('“never', 'never'))).toMatchObject({ claims: [], unread: [expect.any(String)] });
  });

  test('is reported if it quotes a sentence that the document no longer contains, or contains in another section', () => {
    expect(wrongWith(claim, document.replace('5 s', '6 s'), tests)).toEqual(['the document does not say so']);
    expect(wrongWith({ ...claim, section: 'page' }, document, tests)).toEqual(['it is said in another section']);
    expect(wrongWith(claim, undefined, tests)).toEqual(['there is no such document']);
  });

  test.each([
    ['under another title', "test('is long', () => {});", 'the file has no test of that title'],
    ['skipped', "test.skip('is | short', () => {});", 'the test is skipped, or to be written'],
    ['skipped by an option', "test('is | short', { skip: true }, () => {});", 'the test is skipped, or to be written'],
    ['to be written', "test.todo('is | short');", 'the test is skipped, or to be written'],
    ['meant to fail', "test.fails('is | short', () => {});", 'the test is skipped, or to be written'],
    [
      'skipped with others',
      "describe.skip('all', () => { test.each([1])('is | short', () => {}); });",
      'the test is skipped, or to be written',
    ],
    ['named only in a comment', "// test('is | short')", 'the file has no test of that title'],
  ])('is reported if it names a test that is %s', (_, source, wrong) => {
    expect(wrongWith(claim, document, writtenTests(source))).toEqual([wrong]);
  });

  test('is reported if it names a file that does not exist', () => {
    expect(wrongWith(claim, document, undefined)).toEqual(['there is no a.test.ts']);
  });

  test('an unlisted sentence that has a number or allows no exception is reported', () => {
    expect(unlisted(document, ['never more than 5 s'])).toEqual([]);
    expect(unlisted(document, [])).toEqual(['It is never more than 5 s.']);
    const more = `${document}\n* It takes 3 minutes at night.\n* It always ends; nobody waits.\n\n| limit | 64 keys |\n`;
    expect(unlisted(more, ['never more than 5 s'])).toEqual([
      '* It takes 3 minutes at night.',
      '* It always ends;',
      '| limit | 64 keys |',
    ]);
    const elsewhere =
      '```sh\nsleep 5 s\n```\n\n<!-- sizes: by hand -->\n| a | 5 kB |\n<!-- /sizes -->\n\n| F3 | 5 s |\n';
    expect(unlisted(elsewhere, [])).toEqual([]);
  });
});
