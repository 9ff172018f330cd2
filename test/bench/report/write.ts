import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MissingPrerequisite } from '../../support/python-venv.ts';
import { measureAndKeep, readKept, verdictsOn } from './kept.ts';
import { pageOf } from './page.ts';
import { PARTS, type PartName, type Progress } from './parts.ts';
import { picturesOf } from './pictures.ts';

/** Where the results of the parts are, in the folder of the documentation. */
const RESULTS = 'benchmarks';

/**
 * Measures parts and stores each at once; a part that cannot be measured does not stop the others.
 * @returns The parts that should have been measured and were not.
 */
export async function measureAll(
  parts: readonly PartName[],
  docs: string,
  progress: () => Progress,
  measure = measureAndKeep,
): Promise<readonly PartName[]> {
  const failed: PartName[] = [];
  for (const name of parts) {
    process.stderr.write(`${name}\n`);
    try {
      await measure(name, join(docs, RESULTS), progress());
    } catch (error) {
      process.stderr.write(`${name} was not measured: ${error instanceof Error ? error.message : 'unknown'}\n`);
      const mayLack = 'isOptional' in PARTS[name] && error instanceof MissingPrerequisite;
      if (!mayLack) failed.push(name);
    }
  }
  return failed;
}

/** Writes page and pictures from the stored results. Returns the limits of these parts that are not met, as lines. */
export async function writeReport(docs: string, parts: readonly PartName[]): Promise<readonly string[]> {
  const kept = await readKept(join(docs, RESULTS));
  await mkdir(join(docs, 'images'), { recursive: true });
  for (const [file, svg] of picturesOf(kept)) await writeFile(join(docs, 'images', file), svg);
  await writeFile(join(docs, 'benchmarks.md'), pageOf(kept));
  return parts.flatMap((name) => {
    const verdicts = verdictsOn(kept, name);
    if (verdicts !== undefined) return verdicts.filter(({ met }) => !met).map(({ law }) => `${name}: ${law}`);
    return 'isOptional' in PARTS[name] ? [] : [`${name}: not measured`];
  });
}
