import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as core from '@sealring/core';
import * as dynamodb from '@sealring/dynamodb';
import * as mcp from '@sealring/mcp';
import * as postgres from '@sealring/postgres';
import * as redis from '@sealring/redis';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = textOf('docs/errors.md');

// The reports of the public API; the check of each package compares them with its sources.
const reports = globSync('packages/*/api*.md', { cwd: root }).map(textOf).join('\n');
const LABELS = ['Means', 'Seen as', 'Usual causes', 'Do', 'Who acts'];
/** Errors of the language itself; their sections are adjacent. */
const OF_THE_LANGUAGE = ['TypeError', 'RangeError'];

const textsIn = (list: string): readonly string[] => [...list.matchAll(/'([^']*)'/g)].map(([, text = '']) => text);

/** The members of every union of texts that a constant lists: `type Kind = (typeof KINDS)[number]`. */
const unions = new Map(
  [...reports.matchAll(/export type (\w+) = \(typeof (\w+)\)\[number\];/g)].map(([, name = '', constant = '']) => [
    name,
    textsIn(new RegExp(`export const ${constant}: readonly \\[(.*)\\];`).exec(reports)?.[1] ?? ''),
  ]),
);

/** Of a union, or of `type Kind = Exclude<Union, 'one'>`. */
function membersOf(name: string): readonly string[] {
  const [, whole = name, without = ''] =
    new RegExp(`export type ${name} = Exclude<(\\w+), '([^']*)'>;`).exec(reports) ?? [];
  return (unions.get(whole) ?? [`no members of ${name} are found`]).filter((member) => member !== without);
}

/** Every exported error class, with the values of its `kind` or `reason`. */
const classes = new Map(
  [...reports.matchAll(/^export class (\w+) extends \w*Error \{(.*?)^\}/gms)].map(([, name = '', body = '']) => {
    const union = /readonly (?:kind|reason): (\w+);/.exec(body)?.[1];
    return [name, union === undefined ? [] : membersOf(union)] as const;
  }),
);

const wire = textOf('packages/mcp/src/typescript/wire.ts');
const verifyReasons = textsIn(/export type TypescriptReason =([^;]*);/.exec(wire)?.[1] ?? '');

/** Headings below the heading of the class, as the page spells them. */
const words = [
  ...[...classes].map(([name, members]) => [name, members] as const),
  ['RejectReason', mcp.REJECT_REASONS] as const,
  ['verify', verifyReasons] as const,
].flatMap(([name, members]) => members.map((member) => `${name}: ${member}`));

interface Section {
  readonly title: string;
  readonly level: number;
  readonly body: string;
}

const sections: readonly Section[] = page
  .split(/^(?=#{2,3} )/m)
  .slice(1)
  .map((text) => {
    const [, marks = '', title = ''] = /^(#+) (.*)$/m.exec(text) ?? [];
    return { title, level: marks.length, body: text.slice(text.indexOf('\n')) };
  });
const titlesOf = (level: number): string[] => sections.filter((one) => one.level === level).map(({ title }) => title);

describe('the page on errors', () => {
  test('the page on errors is compared with every error class that a package exports', () => {
    const exported = [core, mcp, redis, postgres, dynamodb].flatMap((names) =>
      Object.entries(names).flatMap(([name, value]) =>
        typeof value === 'function' && value.prototype instanceof Error ? [name] : [],
      ),
    );
    expect([...classes.keys()].toSorted()).toEqual([...new Set(exported)].toSorted());
    expect(classes.get('KeyWrapperError')).toContain('throttled');
    expect(verifyReasons).toContain('mac');
  });

  test('the page on errors has a section for each class, and no others', () => {
    const named = titlesOf(2).flatMap((title) => title.match(/\b[A-Z]\w+(?:Error|RequestState)\b/g) ?? []);
    expect(named.toSorted()).toEqual([...classes.keys(), ...OF_THE_LANGUAGE].toSorted());
  });

  test('the page on errors has a section for each kind and reason, and no others', () => {
    expect(titlesOf(3).toSorted()).toEqual(words.toSorted());
  });

  test('puts each kind and reason below its class', () => {
    let above = '';
    const astray = sections.filter(({ level, title }) => {
      if (level === 2) above = title;
      return level === 3 && !title.startsWith(`${above}: `);
    });
    expect(astray).toEqual([]);
  });

  const withKinds = new Set(words.map((word) => word.split(':')[0]));
  const whole = sections.filter(({ title }) => !withKinds.has(title) && title !== 'health().lastError');
  test.each(whole)('$title: states its meaning, symptoms, causes and remedy, and who acts', ({ body }) => {
    expect([...body.matchAll(/^\* \*\*([^*]+):\*\* \S/gm)].map(([, label]) => label)).toEqual(LABELS);
  });

  test('quotes only messages of the ring that exist', () => {
    const sources = readdirSync(join(root, 'packages/core/src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => textOf(join('packages/core/src', name)))
      .join('\n');
    const quoted = [...page.matchAll(/“([^”]+)”/g)].map(([, text = '']) => text.replaceAll(/\s+/g, ' '));
    expect(quoted.length).toBeGreaterThan(10);
    expect(quoted.filter((text) => !sources.includes(text))).toEqual([]);
  });
});

const OPERATORS_PAGES = [
  'docs/errors.md',
  'docs/guides/incidents.md',
  'docs/guides/threat-model.md',
  'docs/guides/choose-a-store.md',
  'docs/guides/rotation-and-revocation.md',
  'docs/guides/export-and-import.md',
  'docs/guides/operate.md',
  'docs/guides/parity.md',
  'docs/providers/README.md',
  'docs/providers/aws-kms.md',
  'docs/providers/gcp-kms.md',
  'docs/providers/azure-key-vault.md',
  'docs/providers/vault-transit.md',
  'docs/README.md',
];

/** The anchors of headings, as GitHub makes them. */
function anchorsOf(markdown: string): Set<string> {
  const headings = [...markdown.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)];
  return new Set(
    headings.map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(/\s/g, '-'),
    ),
  );
}

/** Numbers as a page writes them: `21 600`. */
const numbersIn = (text: string, unit = ''): string[] =>
  [...text.matchAll(new RegExp(String.raw`(?<![\d.])(\d{1,3}(?: \d{3})+|\d+)(?! \d{3}\b|\d)${unit}`, 'g'))].map(
    ([, number = '']) => number,
  );
// Pages with the formulas.
const derived = new Set(
  ['docs/guides/key-lifecycle.md', 'docs/guides/fleet-under-fault.md', 'packages/mcp/README.md'].flatMap((path) =>
    numbersIn(textOf(path)),
  ),
);

describe.each(OPERATORS_PAGES)('the page %s', (document) => {
  const text = textOf(document);

  test('links to existing files and headings', () => {
    const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
      if (/^https?:/.test(target)) return [];
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? document : relative(root, resolve(root, dirname(document), path));
      if (!existsSync(join(root, file))) return [target];
      return anchor === undefined || anchorsOf(textOf(file)).has(anchor) ? [] : [target];
    });
    expect(broken).toEqual([]);
  });

  test('contains only durations that are on the pages with the formulas', () => {
    expect(numbersIn(text, ' s\\b').filter((number) => number.length > 2 && !derived.has(number))).toEqual([]);
  });

  test('names only commands that sealring has', () => {
    const commands = [...textOf('packages/cli/README.md').matchAll(/^\| `(\w+)[^|]*\|/gm)].map(([, name]) => name);
    const used = [...text.matchAll(/(?:npx |`)sealring (\w+)/g)].map(([, name]) => name);
    expect([...new Set(used)].filter((name) => !commands.includes(name))).toEqual([]);
  });
});
