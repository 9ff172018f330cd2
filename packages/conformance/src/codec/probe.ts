/*
 * Runs in a process of its own, which has loaded nothing but the target's module: what is printed, left behind or
 * changed here was so by the codec. Called with the module's URL and a mark that surrounds what is printed meanwhile.
 */
import { writeSync } from 'node:fs';
import { loadTarget } from '../target-module.ts';
import { builtIns, type LeftBehind, observe, patches } from './observe.ts';
import { readCodecTarget } from './target.ts';
import { CodecTrial, useOnce } from './trial.ts';

/** What the process reports about a codec that it used. */
export type Probed = LeftBehind | { readonly failed: string };

const [module = '', mark = ''] = process.argv.slice(2);

function putMark(): void {
  for (const stream of [1, 2]) writeSync(stream, mark);
}

async function probe(): Promise<Probed> {
  // Before the module is loaded: it may patch them then.
  const before = builtIns();
  const trial = new CodecTrial(readCodecTarget('runCodecConformance', (await loadTarget(module)) as never), 0);
  const codec = await trial.create();
  putMark();
  try {
    const left = observe(() => useOnce(codec));
    return { ...left, globals: [...new Set([...left.globals, ...patches(before)])] };
  } finally {
    putMark();
  }
}

function tell(probed: Probed): void {
  process.send?.(probed, () => process.exit());
}

probe().then(tell, (error: unknown) => tell({ failed: error instanceof Error ? error.name : 'something' }));
