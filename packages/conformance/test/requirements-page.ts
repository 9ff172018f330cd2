import { readFileSync } from 'node:fs';
import type { Requirement, SuiteName } from '../src/index.ts';

/** What a requirement is tried with: every cell names what is tried, or why nothing else is. */
const CELLS = ['Calls', 'Bytes', 'Lengths', 'Order', 'Latency'] as const;

type Cells = ReadonlyMap<string, string>;

/** Where the page of a suite is, seen from a test. */
export function pageOf(suite: SuiteName): string {
  return `../docs/${suite}-requirements.md`;
}

/** What the page of a suite says each requirement is tried with, by id. */
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

/** The page of a suite: the sentence of every requirement from the code, its cells from the page as it is. */
export function requirementsPage(suite: SuiteName, requirements: readonly Requirement[]): string {
  const written = readCells(suite);
  const sections = requirements.map(({ id, level, text, source }) => {
    const lines = CELLS.map((name) => {
      const cell = written.get(id)?.get(name);
      if (cell === undefined) throw new Error(`the page does not say which ${name.toLowerCase()} ${id} is tried with`);
      return `* ${name}: ${cell}.`;
    });
    return [`## \`${id}\``, `${level}: ${text} (${source})`, lines.join('\n')].join('\n\n');
  });
  const note = `<!-- \`vitest run --project conformance ${suite} -u\` writes the sentences; the lists are written by hand. -->`;
  return `${[`# What ${suite.replace('-', ' ')}s are tried with`, note, ...sections].join('\n\n')}\n`;
}
