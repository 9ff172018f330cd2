import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const FOLDER = new URL('corpus/', import.meta.url);
/** Limits on the corpus in the repository: only a few inputs, all short. */
const LONGEST = 1_024;
const MOST = 200;

/** The inputs that earlier runs found for a parser, as base64. */
export function readCorpus(name: string): readonly Uint8Array[] {
  const file = new URL(`${name}.json`, FOLDER);
  if (!existsSync(file)) return [];
  const lines: readonly string[] = JSON.parse(readFileSync(file, 'utf8'));
  return lines.map((line) => Buffer.from(line, 'base64'));
}

/** Adds inputs to those of earlier runs. */
export function extendCorpus(name: string, found: readonly Uint8Array[]): void {
  const short = [...readCorpus(name), ...found].filter(({ length }) => length <= LONGEST);
  const lines = new Set(short.map((input) => Buffer.from(input).toString('base64')));
  writeFileSync(new URL(`${name}.json`, FOLDER), `${JSON.stringify([...lines].slice(0, MOST), null, 1)}\n`);
}
