import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Verdict } from '../verdict.ts';
import { machine, versionsOf } from './machine.ts';
import { PART_NAMES, PARTS, type PartName, type Progress, type Reports } from './parts.ts';

/** One part of the benchmarks as stored: its results, and everything that they depend on. */
interface Kept<Name extends PartName> {
  readonly part: Name;
  /** The day, UTC. */
  readonly date: string;
  readonly machine: string;
  readonly node: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  readonly report: Reports[Name];
}
/** The results. */
export type KeptParts = { readonly [Name in PartName]?: Kept<Name> };

/** Measures a part and writes `<folder>/<part>.json`. */
export async function measureAndKeep(name: PartName, folder: string, progress: Progress): Promise<void> {
  const report = await PARTS[name].measure(progress);
  const kept = {
    part: name,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    node: process.version,
    versions: await versionsOf(name),
    options: PARTS[name].options,
    report,
  };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(kept, undefined, 2)}\n`);
}

export async function readKept(folder: string): Promise<KeptParts> {
  const found = await Promise.all(PART_NAMES.map(async (name) => [name, await readPart(join(folder, `${name}.json`))]));
  return Object.fromEntries(found.filter(([, kept]) => kept !== undefined));
}

async function readPart(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return text === undefined ? undefined : JSON.parse(text);
}

/** The verdicts by the current limits; undefined for a part that was not measured. */
export function verdictsOn(kept: KeptParts, name: PartName): readonly Verdict[] | undefined {
  const report = kept[name]?.report;
  // Maps a part's name to its own report and its own limits.
  const judge: (report: never) => readonly Verdict[] = PARTS[name].judge;
  return report === undefined ? undefined : judge(report as never);
}
