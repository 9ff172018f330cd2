import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { prometheusPrograms } from '../support/promtool.ts';
import { runProgram } from '../support/run-program.ts';
import { type Exported, exportedMetrics, startBusyProcess } from './exported.ts';
import { generated, instrumentsOfTheBridge } from './generate.ts';
import { otlpName, withOtlpNames } from './otlp-names.ts';
import { startPrometheus } from './prometheus-server.ts';
import { readPromql } from './promql.ts';

const root = join(import.meta.dirname, '../..');
const FOLDER = join(root, 'packages/otel/observability');
const RULE_TESTS = join(import.meta.dirname, 'alerts.test.yml');
const POLL = { interval: 200 };
/** Labels that Prometheus itself adds to every sample, and those that its functions make. */
const OF_PROMETHEUS = ['instance', 'job', 'le'];

const programs = await prometheusPrograms();
const instruments = instrumentsOfTheBridge();

/** The files for each naming, and how a text gets its names. */
const NAMINGS = [
  { naming: 'the exporter for Prometheus', suffix: '', named: (text: string) => text },
  { naming: 'a collector', suffix: '-otlp', named: (text: string) => withOtlpNames(text, instruments) },
];

test.each([...generated()])('%s is identical to the file that npm run observability writes', (name, text) => {
  expect(readFileSync(join(FOLDER, name), 'utf8')).toBe(text);
});

test.each([
  ['a.calls', '{call}', 'counter', 'a_calls_total'],
  ['a.total.calls', '1', 'counter', 'a_calls_total'],
  ['a.ready', '1', 'gauge', 'a_ready_ratio'],
  ['a.ready', '{member}', 'gauge', 'a_ready'],
  ['a.used', '1', 'up-down counter', 'a_used'],
  ['a.duration', 's', 'histogram', 'a_duration_seconds'],
  ['a.seconds.left', 's', 'gauge', 'a_seconds_left'],
  ['a.size', 'By', 'counter', 'a_size_bytes_total'],
] as const)('a collector translates %s with the unit %s, a %s, to %s', (name, unit, kind, translated) => {
  expect(otlpName({ name, unit, kind })).toBe(translated);
});

test('no metric has a unit that a collector would turn into _ratio', () => {
  expect(instruments.filter((one) => otlpName(one).endsWith('_ratio'))).toEqual([]);
});

describe.each(NAMINGS)('the files with the names of $naming', ({ suffix, named }) => {
  const RULES = join(FOLDER, `alerts${suffix}.yml`);
  const DASHBOARD = join(FOLDER, `grafana-dashboard${suffix}.json`);
  const rules = readFileSync(RULES, 'utf8');
  const names = [...rules.matchAll(/^ +- alert: (\w+)$/gm)].map(({ 1: name = '' }) => name);

  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly datasource?: { readonly uid: string };
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }

  const dashboard: { readonly panels: readonly Panel[]; readonly templating: unknown } = JSON.parse(
    readFileSync(DASHBOARD, 'utf8'),
  );

  /** The query as a browser with one selected ring requests it. */
  function asked(expression: string): string {
    return expression.replaceAll('$__rate_interval', '5m').replaceAll('$ring', 'payments');
  }

  /** `expr:` in one line, and folded over several. */
  function ruleExpressions(): readonly string[] {
    return [...rules.matchAll(/^( +)expr: (?:>-\n((?:\1 +.*\n)+)|(.*)$)/gm)].map(({ 2: folded, 3: line }) =>
      (folded ?? line ?? '')
        .split('\n')
        .map((text) => text.trim())
        .join(' ')
        .trim(),
    );
  }

  const queries = [
    ...ruleExpressions().map((expression, index) => ({ place: `alert ${names[index]}`, expression })),
    ...dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ place: `panel ${title}`, expression: asked(expr) })),
    ),
  ];

  describe('every query of the alerts and of the dashboard', () => {
    let exported: Exported;
    beforeAll(async () => {
      await using busy = await startBusyProcess();
      exported = exportedMetrics(named(await busy.page()));
    });

    test('at least a few queries are checked', () => {
      expect(ruleExpressions()).toHaveLength(names.length);
      expect(queries.length).toBeGreaterThan(30);
      expect(exported.size).toBeGreaterThan(20);
    });

    test.each(queries)('a query is valid PromQL: $place: $expression', ({ expression }) => {
      expect(readPromql(expression).errors).toEqual([]);
    });

    test.each(queries)('a query uses only exported metrics: $place: $expression', ({ expression }) => {
      const { metrics, labels } = readPromql(expression);
      expect(metrics).not.toEqual([]);
      for (const metric of metrics) expect(exported.has(metric), metric).toBe(true);
      const known = new Set([...OF_PROMETHEUS, ...metrics.flatMap((metric) => [...(exported.get(metric) ?? [])])]);
      expect(labels.filter((label) => !known.has(label))).toEqual([]);
    });

    test('the queries use every exported metric', () => {
      const used = new Set(queries.flatMap(({ expression }) => readPromql(expression).metrics));
      const families = [...exported.keys()].map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
      const seen = [...used].map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
      expect(families.filter((family) => !seen.includes(family))).toEqual([]);
    });

    test('a text that is not a query, or uses another metric, is reported', () => {
      expect(readPromql('sum(rate(sealring_x[5m])').errors).not.toEqual([]);
      const { metrics, labels } = readPromql('sum by (who) (rate(sealring_x{reason="y"}[5m])) > 1');
      expect([metrics, labels]).toEqual([['sealring_x'], ['who', 'reason']]);
    });
  });

  describe.skipIf(programs === undefined)('the alert rules, checked by promtool', () => {
    test('the alert rules have no syntax error', async () => {
      expect(await runProgram(programs?.promtool ?? '', ['check', 'rules', RULES])).toMatchObject({ code: 0 });
    });

    test('the alerts fire when they must, but not for a healthy fleet', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sealring-rules-'));
      try {
        cpSync(RULES, join(folder, 'alerts.yml'));
        writeFileSync(join(folder, 'alerts.test.yml'), named(readFileSync(RULE_TESTS, 'utf8')));
        expect(
          await runProgram(programs?.promtool ?? '', ['test', 'rules', 'alerts.test.yml'], { cwd: folder }),
        ).toMatchObject({
          code: 0,
        });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    test('every alert rule has a test in which it fires and one in which it does not', () => {
      const tried = [...readFileSync(RULE_TESTS, 'utf8').matchAll(/alertname: (\w+)/g)].map(({ 1: name = '' }) => name);
      expect(names.filter((name) => tried.filter((other) => other === name).length < 2)).toEqual([]);
    });
  });

  describe.skipIf(programs === undefined)('the dashboard, queried in Prometheus', () => {
    test('every panel of the dashboard has series', async () => {
      await using busy = await startBusyProcess();
      await using prometheus = await startPrometheus(programs?.server ?? '', async () => named(await busy.page()));
      // A rate needs two samples.
      await expect.poll(() => prometheus.query('count_over_time(sealring_codec_ready[5m]) >= 2'), POLL).not.toEqual([]);
      const empty: string[] = [];
      for (const { title, targets = [] } of dashboard.panels) {
        for (const { expr } of targets) {
          const series = await prometheus.query(expr.replaceAll('$__rate_interval', '5m').replaceAll('$ring', '.*'));
          if (series.length === 0) empty.push(`${title}: ${expr}`);
        }
      }
      expect(empty).toEqual([]);
    });
  });

  describe('the dashboard for Grafana', () => {
    test('the dashboard conforms to Grafana’s own types', async () => {
      const folder = mkdtempSync(join(root, '.cache', 'grafana-'));
      try {
        // Texts of the file take the place of enum members.
        const program = `import type { Dashboard } from '@grafana/schema';
type Json<T> = T extends string ? \`\${T}\` : T extends number ? T | (number extends T ? never : \`\${T}\` extends \`\${infer N extends number}\` ? N : never)
  : T extends readonly (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
export const dashboard: Json<Dashboard> = ${readFileSync(DASHBOARD, 'utf8')};
`;
        writeFileSync(join(folder, 'dashboard.ts'), program);
        writeFileSync(
          join(folder, 'tsconfig.json'),
          JSON.stringify({ extends: relative(folder, join(root, 'tsconfig.test.json')), include: ['*.ts'] }),
        );
        const tsc = join(root, 'node_modules', '.bin', 'tsc');
        expect(await runProgram(tsc, ['-p', '.', '--pretty', 'false'], { cwd: folder })).toEqual({
          code: 0,
          output: '',
        });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    test('the panels of the dashboard have unique ids, do not overlap, and use the chosen data source', () => {
      const { panels } = dashboard;
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
      for (const { type, title, datasource, targets = [], gridPos } of panels) {
        expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
        if (type === 'row') continue;
        expect(datasource?.uid, title).toBe('${datasource}');
        expect(targets.length, title).toBeGreaterThan(0);
      }
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
      );
      expect(new Set(cells).size).toBe(cells.length);
    });

    test('every query keeps the labels that its legend shows', () => {
      for (const { title, targets = [] } of dashboard.panels) {
        for (const { expr, legendFormat } of targets) {
          const kept = readPromql(asked(expr)).labels;
          const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(({ 1: label = '' }) => label);
          expect(
            shown.filter((label) => !kept.includes(label)),
            title,
          ).toEqual([]);
        }
      }
    });
  });
});
