import { readFileSync } from 'node:fs';
import type { Requirement, SuiteName } from '../src/index.ts';

/** The cells of a requirement: each lists the checked inputs, or why others are left out. */
const CELLS = ['Calls', 'Bytes', 'Lengths', 'Order', 'Latency'] as const;

type Cells = ReadonlyMap<string, string>;

/** The path of the page of a suite, relative to a test. */
export function pageOf(suite: SuiteName): string {
  return `../docs/${suite}-requirements.md`;
}

/** The cells of the page of a suite, by requirement id. */
export function readCells(suite: SuiteName): ReadonlyMap<string, Cells> {
  const page = readFileSync(new URL(pageOf(suite), import.meta.url), 'utf8');
  const [, ...sections] = page.split(/^## `/m);
  return new Map(
    sections.map((section) => {
      const cells = [...section.matchAll(/^\* (\w+): (.+)\.$/gm)];
      return [section.split('`')[0] ?? '', new Map(cells.map(([, name = '', cell = '']) => [name, cell]))];
    }),
  );
}

/** The expected page of a suite: the sentences come from the code, the cells from the existing page. */
export function requirementsPage(suite: SuiteName, requirements: readonly Requirement[]): string {
  const written = readCells(suite);
  const sections = requirements.map(({ id, level, text, source }) => {
    const lines = CELLS.map((name) => {
      const cell = written.get(id)?.get(name);
      if (cell === undefined) throw new Error(`the page does not list the ${name.toLowerCase()} of ${id}`);
      return `* ${name}: ${cell}.`;
    });
    return [`## \`${id}\``, `${level}: ${text} (${source})`, lines.join('\n')].join('\n\n');
  });
  const options = `Unless a requirement needs other options, half of all calls, at random, pass a \`signal\` and \`onServiceDate\`, as a ring codec does.`;
  const note = `<!-- \`vitest run --project conformance ${suite} -u\` writes the sentences; the lists are written by hand. -->`;
  return `${[`# How ${suite.replace('-', ' ')}s are checked`, note, options, ...sections].join('\n\n')}\n`;
}
