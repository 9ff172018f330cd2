import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { MissingPrerequisite } from '../support/python-venv.ts';
import { apart, ratioScale } from './report/chart.ts';
import { ALL_MET } from './report/fixture.ts';
import { type KeptParts, readKept, verdictsOn } from './report/kept.ts';
import { versionsOf } from './report/machine.ts';
import { pageOf } from './report/page.ts';
import { PART_NAMES, PARTS, type PartName } from './report/parts.ts';
import { picturesOf } from './report/pictures.ts';
import { measureAll, writeReport } from './report/write.ts';
import { type Cost, OURS } from './token-path.ts';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const committed = await readKept(join(docs, 'benchmarks'));
const textOf = (path: string): string => readFileSync(join(docs, path), 'utf8');
/** Values that depend on time are ratios: no unit of time, and no comparison without a reference. */
const CLAIMS =
  /\b(?:fast(?:er|est)?|slow(?:er|est)?|quick(?:er|est|ly)?|best|better|instant\w*|negligible|zero-cost|free|high-performance|blazing|[nµ]s|nanoseconds?|microseconds?|milliseconds?)\b|\d ms\b|\d\/s\b|µs|\bper second\b/gi;

/** The invented results, with other costs. */
function withCosts(change: (cost: Cost) => Cost): KeptParts {
  const tokenPath = ALL_MET['token-path'];
  const report = { ...tokenPath.report, costs: tokenPath.report.costs.map(change) };
  return { ...ALL_MET, 'token-path': { ...tokenPath, report } };
}

function notMet(kept: KeptParts): readonly string[] {
  return PART_NAMES.flatMap((name) => verdictsOn(kept, name) ?? [])
    .filter(({ met }) => !met)
    .map(({ law, measured }) => `${law}: ${measured}`);
}

describe('the published benchmarks', () => {
  test('the page and the pictures match the results, and are absent without results', () => {
    const pictures = picturesOf(committed);
    const published = globSync('images/benchmark-*.svg', { cwd: docs }).map((path) => path.replace(/^images./, ''));
    expect(published.toSorted()).toEqual([...pictures.keys()].toSorted());
    for (const [file, svg] of pictures) expect(textOf(`images/${file}`), file).toBe(svg);
    expect(existsSync(join(docs, 'benchmarks.md'))).toBe(Object.keys(committed).length > 0);
    if (Object.keys(committed).length === 0) return;
    expect(textOf('benchmarks.md')).toBe(pageOf(committed));
    expect(textOf('README.md')).toContain('](benchmarks.md)');
  });

  test('the results are from a full run', () => {
    const given = Object.values(committed).map(({ part, options }) => [part, options]);
    expect(given).toEqual(given.map(([part]) => [part, PARTS[part as PartName].options]));
  });
});

describe('the page of benchmarks', () => {
  test('the page has every part, and says so if every limit is met', () => {
    expect(notMet(ALL_MET)).toEqual([]);
    const page = pageOf(ALL_MET);
    expect(page).toContain('Every limit that was measured is met.');
    expect(page).not.toMatch(/not met:|NOT MET|not measured/);
    for (const name of PART_NAMES) {
      expect(page).toContain(`\n## ${PARTS[name].title}\n`);
      expect(page).toContain(`](benchmarks/${name}.json)`);
    }
    expect(page).not.toMatch(/undefined|null|NaN|Infinity|\[object/);
  });

  test('claims nothing without results', () => {
    const page = pageOf({});
    expect(page).toContain('Nothing was measured.');
    expect(page).not.toContain('is met.');
    expect(picturesOf({}).size).toBe(0);
  });

  test('shows an unmet limit both at the top and in its part', () => {
    const { boundary } = ALL_MET;
    const ratio = { median: 1.16, low: 1.1, high: 1.2 };
    const page = pageOf({ ...ALL_MET, boundary: { ...boundary, report: { ...boundary.report, ratio } } });
    expect(page).not.toContain('Every limit that was measured is met.');
    expect(page).toContain('**Not met:**\n\n| part | criterion | limit | measured |');
    expect(page).toContain(
      '| Boundary | a flow of two rounds with the boundary, as a multiple of one without it | 1.15 | 1.16 |',
    );
    expect(page).toContain(
      '| a flow of two rounds with the boundary, as a multiple of one without it | 1.15 | 1.16 | **NOT MET** |',
    );
    expect(page).toContain('| [Boundary](#boundary) | 2 | 1 | **1** |');
  });

  test('names a part that was not measured', () => {
    const { steadiness: _, ...rest } = ALL_MET;
    const page = pageOf(rest);
    expect(page).toContain('**Not measured:** Steadiness.');
    expect(page).toContain('| [Steadiness](#steadiness) | – | – | – | **not measured** |');
    expect(page).toMatch(/\n## Steadiness\n\n[^\n]+\n\n\*\*not measured\*\*\.\n/);
    expect(page).not.toContain('benchmark-steadiness.svg');
  });

  test('the page has every picture, with a description of what the picture shows', () => {
    const shown = [...pageOf(ALL_MET).matchAll(/!\[[^\]]{20,}\]\(images\/([^)]+)\)/g)].map(([, file = '']) => file);
    expect(shown.toSorted()).toEqual([...picturesOf(ALL_MET).keys()].toSorted());
    expect(shown).toHaveLength(4);
  });

  test('formats package names as code', () => {
    const page = pageOf(ALL_MET);
    expect(page).toContain('| `@fastify/secure-session` |');
    expect(page).not.toMatch(/[^`]@\w/);
  });

  test('contains no unit of time and no claim about speed', () => {
    const texts = [pageOf(ALL_MET), pageOf(committed), ...picturesOf(ALL_MET).values()];
    expect(texts.flatMap((text) => [...text.matchAll(CLAIMS)].map(([word]) => word))).toEqual([]);
    expect('2 µs, 3 ms, 40/s: the fastest'.match(CLAIMS)).toEqual(['µs', '3 ms', '0/s', 'fastest']);
  });
});

describe('the verdict on the token path', () => {
  const only = (contender: string, change: Partial<Cost>): KeptParts =>
    withCosts((cost) =>
      cost.contender === contender && cost.operation === 'seal' && cost.bytes === 358 ? { ...cost, ...change } : cost,
    );
  const at = (median: number) => ({ median, low: median, high: median });

  test.each([
    [
      'a bare cipher that is much faster than Sealring',
      only('bare cipher', { timesOurs: at(0.79) }),
      'seal by Sealring, as a multiple of the bare cipher, at most: 1.27',
    ],
    [
      'a hand-written codec that is not much slower than Sealring',
      only('plain codec', { timesOurs: at(1.3) }),
      'seal by Sealring, as a multiple of the plain codec, at most: 0.77',
    ],
    [
      'a lead that is too small',
      only('jose', { timesOursAtP50: at(14.9) }),
      "seal by jose, as a multiple of Sealring's p50, at least: 14.9",
    ],
    [
      'a tail that is as short as ours',
      only('jose', { p999: 16 }),
      "seal by jose, as a multiple of Sealring's p99.9, more than: 1",
    ],
  ])('rejects %s', (_, kept, law) => {
    expect(notMet(kept)).toEqual([law]);
  });

  test('a tail with too few measurements meets no limit, and is reported as not measured', () => {
    const kept = only(OURS, { p999: undefined });
    expect(notMet(kept)).toHaveLength(5);
    expect(pageOf(kept)).toContain(
      "| seal by jose, as a multiple of Sealring's p99.9, more than | 1 | not measured | **NOT MET** |",
    );
  });

  test('payloads of other sizes are shown without a verdict', () => {
    expect(notMet(withCosts((cost) => (cost.bytes === 64 ? { ...cost, timesOurs: at(0.1) } : cost)))).toEqual([]);
  });
});

describe('the pictures of benchmarks', () => {
  test.each([...picturesOf(ALL_MET)])(
    '%s has a text alternative, a light and a dark style, and no external resource',
    (_, svg) => {
      expect(svg).toMatch(/<title id="title">.{10,}<\/title>\n<desc id="desc">.{40,}<\/desc>/);
      expect(svg).toContain('@media (prefers-color-scheme: dark)');
      expect(svg).not.toMatch(/NaN|undefined|Infinity|<script|href=|url\(/);
      const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
      const places = (name: string): readonly number[] =>
        [...svg.matchAll(new RegExp(`\\s(?:c?${name}[12]?)="(-?[\\d.]+)"`, 'g'))].map(([, value]) => Number(value));
      expect(places('x').filter((x) => x < 0 || x > Number(width))).toEqual([]);
      expect(places('y').filter((y) => y < 0 || y > Number(height))).toEqual([]);
    },
  );

  test('a scale of ratios includes its values and 1, and doubles in equal steps', () => {
    for (const values of [[0.8, 1.3], [0.5, 90], [2, 20_000], []]) {
      const { ticks, place } = ratioScale(values, 100, 200);
      expect(ticks).toContain(1);
      for (const value of values) expect(place(value)).toBeGreaterThanOrEqual(100);
      for (const value of values) expect(place(value)).toBeLessThanOrEqual(200);
      expect(place(4) - place(2)).toBeCloseTo(place(2) - place(1), 9);
    }
  });

  test('labels keep their order and a minimum distance', () => {
    const pushed = apart([50, 51, 10, 100], 15, 100);
    expect(pushed).toEqual([50, 65, 10, 100]);
    expect(apart([99, 100, 98], 15, 100)).toEqual([85, 100, 70]);
  });
});

describe('a benchmark run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-bench-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('keeps each part in its own file, writes the page, and returns the missing parts and the limits that are not met', async () => {
    await mkdir(join(folder, 'benchmarks'));
    const { boundary } = ALL_MET;
    const broken = { ...boundary, report: { ...boundary.report, ratio: { median: 2, low: 2, high: 2 } } };
    const kept: KeptParts = { growth: ALL_MET.growth, boundary: broken };
    for (const [name, part] of Object.entries(kept)) {
      await writeFile(join(folder, 'benchmarks', `${name}.json`), JSON.stringify(part));
    }
    expect(await writeReport(folder, PART_NAMES)).toEqual([
      'token-path: not measured',
      'boundary: a flow of two rounds with the boundary, as a multiple of one without it',
      'fleet-costs: not measured',
      'steadiness: not measured',
    ]);
    expect(await writeReport(folder, ['growth'])).toEqual([]);
    expect(readFileSync(join(folder, 'benchmarks.md'), 'utf8')).toBe(pageOf(kept));
    expect(readFileSync(join(folder, 'images/benchmark-heap.svg'), 'utf8')).toBe(
      picturesOf(kept).get('benchmark-heap.svg'),
    );
  });

  test('continues when a part cannot be measured, and excuses only the lack of an optional program', async () => {
    const broken: Readonly<Partial<Record<PartName, Error>>> = {
      boundary: new Error('broken'),
      steadiness: new MissingPrerequisite('no redis-server'),
      instructions: new MissingPrerequisite('no valgrind'),
    };
    const kept: PartName[] = [];
    const measure = async (name: PartName): Promise<void> => {
      if (broken[name] !== undefined) throw broken[name];
      kept.push(name);
    };
    const progress = () => () => undefined;
    expect(await measureAll(PART_NAMES, folder, progress, measure)).toEqual(['boundary', 'steadiness']);
    expect(kept).toEqual(['token-path', 'fleet-costs', 'growth']);
    const fails = () => Promise.reject(new Error('broken'));
    expect(await measureAll(['instructions'], folder, progress, fails)).toEqual(['instructions']);
  });

  test('finds the version of everything that a part depends on', async () => {
    for (const name of PART_NAMES) {
      const versions = await versionsOf(name);
      for (const [of, version] of Object.entries(versions)) expect(version, of).toMatch(/^\d+\.\d+|^unknown$/);
      expect(versions).toHaveProperty(['@sealring/core']);
    }
  });

  test('unreadable results of a run are not treated as absent', async () => {
    await writeFile(join(folder, 'benchmarks', 'steadiness.json'), '{');
    await expect(writeReport(folder, PART_NAMES)).rejects.toThrow(SyntaxError);
    rmSync(join(folder, 'benchmarks', 'steadiness.json'));
    await mkdir(join(folder, 'benchmarks', 'steadiness.json'));
    await expect(writeReport(folder, PART_NAMES)).rejects.toThrow('EISDIR');
  });
});
