import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DefaultTreeAdapterMap, parse as parseHtml } from 'parse5';
import { afterEach, describe, expect, test } from 'vitest';
import { jsonReport, prepareFile, writeWhole } from '../src/cli/outputs.ts';
import { summaryOf } from '../src/cli/terminal.ts';
import type { ConformanceReport, ConformanceResult } from '../src/index.ts';
import { htmlReport } from '../src/reports/html.ts';
import { type RunRecord, repeatOf } from '../src/reports/record.ts';
import type { Requirement } from '../src/requirement.ts';

const NASTY =
  '</code></title><script>alert("1")</script><img src=x onerror=alert(1)> & \' ]]> \u0000\u001b\uD800\uFFFE\u202ea\u2066b\u200e\u200b\u2028\u009b\u{1FFFE}';

/** The end of the text, as reports show it. */
const SHOWN = String.raw`\u0000\u001b\ud800\ufffe\u202ea\u2066b\u200e\u200b\u2028\u009b\ud83f\udffe`;

const UNSEEN = /(?![\t\n])\p{Cc}|\p{Bidi_Control}|\p{Cs}|\p{Noncharacter_Code_Point}|[\u200b\u2028]/u;

const WANTED: readonly Requirement[] = [
  { id: 'X-HOLDS', level: 'MUST', text: 'It holds.', source: 'RFC 1' },
  { id: 'X-WARNS', level: 'SHOULD', text: 'It should.', source: 'RFC 2' },
  { id: 'X-FAILS', level: 'MUST', text: 'It must not fail <here>.', source: 'RFC 3 & 4' },
  { id: 'X-APART', level: 'MUST', text: 'It applies.', source: 'RFC 5' },
  { id: 'X-LATER', level: 'MUST', text: 'It is checked.', source: 'RFC 6' },
];

const RESULTS: readonly ConformanceResult[] = [
  { id: 'X-HOLDS', level: 'MUST', status: 'pass', durationMs: 12 },
  { id: 'X-WARNS', level: 'SHOULD', status: 'warn', detail: `odd ${NASTY} (seed 7)`, durationMs: 3 },
  { id: 'X-FAILS', level: 'MUST', status: 'fail', detail: `bad ${NASTY} (seed 7)`, durationMs: 1_234 },
  { id: 'X-APART', level: 'MUST', status: 'not-applicable', detail: 'not claimed', durationMs: 0 },
];

function recordOf(changes: Partial<ConformanceReport> = {}): RunRecord {
  const report: ConformanceReport = {
    target: NASTY,
    suite: 'codec',
    passed: false,
    results: RESULTS,
    startedAt: '2026-11-21T14:33:39.123Z',
    kitVersion: '1.2.3',
    seed: 7,
    ...changes,
  };
  return { report, wanted: WANTED, command: ['npx', 'sealring-conformance', 'codec', "it's here.mjs"] };
}

type Node = DefaultTreeAdapterMap['node'];
type Element = DefaultTreeAdapterMap['element'];

function* below(node: Node): Generator<Node> {
  yield node;
  for (const child of 'childNodes' in node ? node.childNodes : []) yield* below(child);
}

/** A page as a browser parses it: its elements and the parse errors. */
function read(page: string): { readonly elements: readonly Element[]; readonly errors: readonly string[] } {
  const errors: string[] = [];
  const document = parseHtml(page, { onParseError: ({ code }) => errors.push(code) });
  return { elements: [...below(document)].filter((node): node is Element => 'tagName' in node), errors };
}

function textOf(node: Node | undefined): string {
  if (node === undefined) return '';
  return [...below(node)].map((one) => ('value' in one ? one.value : '')).join('');
}

function attribute(element: Element, name: string): string | undefined {
  return element.attrs.find((one) => one.name === name)?.value;
}

describe('the HTML report', () => {
  test('the HTML report has no HTML errors, scripts or external resources, whatever the target’s name', async () => {
    const { elements, errors } = read(htmlReport(recordOf()));
    expect(errors).toEqual([]);
    const tags = new Set(elements.map(({ tagName }) => tagName));
    for (const tag of ['script', 'img', 'link', 'iframe', 'table']) expect(tags).not.toContain(tag);
    const names = elements.flatMap(({ attrs }) => attrs.map(({ name }) => name));
    expect(names.filter((name) => name.startsWith('on') || ['src', 'href', 'style'].includes(name))).toEqual([]);
    expect(textOf(elements.find(({ tagName }) => tagName === 'h1'))).toContain('<script>alert("1")</script>');
    expect(textOf(elements.find(({ tagName }) => tagName === 'title'))).toContain('</code></title><script>');
  });

  test('escapes invisible characters and characters that reverse text', async () => {
    const page = htmlReport(recordOf());
    expect(page).not.toMatch(UNSEEN);
    const { elements } = read(page);
    expect(textOf(elements.find(({ tagName }) => tagName === 'h1'))).toContain(SHOWN);
    expect(textOf(elements.find((one) => attribute(one, 'id') === 'X-FAILS'))).toContain(SHOWN);
  });

  test('shows the scope and the verdict at the top, then the worst results first', async () => {
    const { elements } = read(htmlReport(recordOf()));
    const header = textOf(elements.find(({ tagName }) => tagName === 'header'));
    expect(header).toContain('fails: 1 of its MUSTs does not hold.');
    expect(header).toContain('Checked: 4 of 5 requirements of the codec suite.');
    expect(header).toContain('1 holds, 1 does not apply, 1 was not checked, 1 warns, 1 fails.');
    const details = elements.filter(({ tagName }) => tagName === 'details');
    expect(details.map((one) => attribute(one, 'id'))).toEqual(['X-FAILS', 'X-WARNS', 'X-LATER', 'X-APART', 'X-HOLDS']);
    expect(details.map((one) => attribute(one, 'open') !== undefined)).toEqual([true, true, false, false, false]);
  });

  test('shows, for each finding, its requirement, level, source and input, and how to repeat it', async () => {
    const { elements } = read(htmlReport(recordOf()));
    const failed = textOf(elements.find((one) => attribute(one, 'id') === 'X-FAILS'));
    const repeat = `npx sealring-conformance codec 'it'\\''s here.mjs' --only X-FAILS --seed 7`;
    for (const part of ['It must not fail <here>.', 'MUST', 'RFC 3 & 4', 'bad </code></title>', '1234 ms', repeat]) {
      expect(failed).toContain(part);
    }
  });

  test('the HTML report has a picture with one named cell for each requirement', async () => {
    const { elements } = read(htmlReport(recordOf()));
    const picture = elements.find(({ tagName }) => tagName === 'svg');
    expect(picture && attribute(picture, 'aria-label')).toMatch(/^5 requirements: 1 holds/);
    const cells = elements.filter(({ tagName }) => tagName === 'g');
    expect(cells.map((cell) => [attribute(cell, 'class'), textOf(cell.childNodes[0])])).toEqual([
      ['pass', 'X-HOLDS: holds'],
      ['warn', 'X-WARNS: warns'],
      ['fail', 'X-FAILS: fails'],
      ['not-applicable', 'X-APART: does not apply'],
      ['not-tried', 'X-LATER: not checked'],
    ]);
    expect(new Set(cells.map((cell) => textOf(cell).slice(-1))).size).toBe(5);
  });

  test('the HTML report fits a narrow screen, and adapts to light and dark themes', async () => {
    const page = htmlReport(recordOf());
    const { elements } = read(page);
    const viewport = elements.find((one) => attribute(one, 'name') === 'viewport');
    expect(viewport && attribute(viewport, 'content')).toBe('width=device-width, initial-scale=1');
    const style = textOf(elements.find(({ tagName }) => tagName === 'style'));
    expect(style).toContain('prefers-color-scheme: dark');
    expect(style).toContain('overflow-wrap: anywhere');
    // No width that exceeds a phone, and no text that cannot wrap.
    expect(style.match(/(?<!max-)(?:^|[;{\s])(?:min-)?width: (?!100%)[^;}]*/g)).toBeNull();
    expect(style).not.toMatch(/nowrap|white-space: pre;/);
  });

  test('reports a pass only for a run that passed completely', async () => {
    const passed = recordOf({ passed: true, results: RESULTS.filter(({ status }) => status === 'pass') });
    expect(htmlReport({ ...passed, wanted: WANTED.slice(0, 1) })).toContain('passes: every checked MUST');
    expect(htmlReport({ ...passed, report: { ...passed.report, passed: false } })).toContain(
      'is undecided: 4 of 5 requirements were not checked.',
    );
  });
});

test('the JSON report parses back into the report, and escapes characters that cannot be seen', () => {
  for (const target of ['Ünïcode 🔑\n', NASTY]) {
    const record = recordOf({ target });
    expect(JSON.parse(jsonReport(record))).toEqual(record.report);
    expect(jsonReport(record)).not.toMatch(UNSEEN);
  }
});

test('the common cause of several findings is shown once, with their ids', () => {
  const results = WANTED.map(({ id, level }) => ({
    id,
    level,
    status: 'fail' as const,
    detail: 'create failed',
    durationMs: 1,
  }));
  const shown = summaryOf(recordOf({ results }), (_, text) => text, true);
  expect(shown.match(/create failed/g)).toHaveLength(1);
  expect(shown).toContain('Same:   X-WARNS, X-FAILS, X-APART, X-LATER');
});

test('a shell splits the command that repeats a requirement back into the original arguments', () => {
  const record: RunRecord = { ...recordOf(), command: ['npx', 'x', 'a b', "it's", '$HOME', '`x`', 'plain/path.js'] };
  expect(repeatOf(record, 'X-1')).toBe("npx x 'a b' 'it'\\''s' '$HOME' '`x`' plain/path.js --only X-1 --seed 7");
});

describe('a report file', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });
  const temporary = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'sealring-reports-'));
    folders.push(folder);
    return folder;
  };

  test('a report file is replaced as a whole, and no temporary file is left', () => {
    const folder = temporary();
    const path = join(folder, 'new', 'report.html');
    prepareFile(path);
    writeWhole(path, 'first');
    prepareFile(path);
    expect(readFileSync(path, 'utf8')).toBe('first');
    writeWhole(path, 'second');
    expect(readFileSync(path, 'utf8')).toBe('second');
    expect(readdirSync(join(folder, 'new'))).toEqual(['report.html']);
  });

  test('a report never replaces a folder or a device', () => {
    const folder = temporary();
    mkdirSync(join(folder, 'folder'));
    // A link, so that a failing test does not replace a device.
    symlinkSync('/dev/null', join(folder, 'link'));
    for (const name of ['folder', 'link']) {
      expect(() => prepareFile(join(folder, name))).toThrow(/the path is not a regular file/);
      expect(() => writeWhole(join(folder, name), 'x')).toThrow(/the path is not a regular file/);
    }
    expect(readdirSync(folder)).toEqual(['folder', 'link']);
    expect(readlinkSync(join(folder, 'link'))).toBe('/dev/null');
  });

  test('a report file that cannot be written causes an error', () => {
    const folder = temporary();
    writeFileSync(join(folder, 'file'), '');
    expect(() => prepareFile(join(folder, 'file', 'report.html'))).toThrow(/ENOTDIR|EEXIST/);
    expect(() => writeWhole(join(folder, 'gone', 'report.html'), 'x')).toThrow(/ENOENT/);
    expect(readdirSync(folder)).toEqual(['file']);
  });
});
