/*
 * Runs in a separate process that loads only the target's module, so all output, leftovers and
 * changes come from the codec. Its arguments are the module's URL and a task (see processes.ts).
 */
import { writeSync } from 'node:fs';
import { builtIns, globalsNow, type LeftBehind, observe, patches } from '../../observe.ts';
import { loadTarget } from '../../target-module.ts';
import { type FirstSeals, firstTokens, type Task } from '../processes.ts';
import { checkCodecTarget } from '../target.ts';
import { CodecTrial, usedBy, useWhole } from '../trial.ts';

const [module = '', given = ''] = process.argv.slice(2);
const task = JSON.parse(given) as Task;

async function trialOf(seed: number): Promise<CodecTrial> {
  const target = await loadTarget(module);
  checkCodecTarget('runCodecConformance', target);
  return new CodecTrial(target, seed);
}

async function probe(mark: string): Promise<LeftBehind> {
  const putMark = (): void => [1, 2].forEach((stream) => writeSync(stream, mark));
  // The module may patch built-ins while it loads, so this runs first.
  const before = builtIns();
  const trial = await trialOf(0);
  const since = globalsNow();
  const used = await usedBy(trial);
  putMark();
  try {
    const left = observe(() => useWhole(used), since);
    return { ...left, globals: [...new Set([...left.globals, ...patches(before)])] };
  } finally {
    putMark();
  }
}

async function seal(seed: number, token: string): Promise<FirstSeals> {
  const trial = await trialOf(seed);
  const codec = await trial.create();
  return { tokens: firstTokens(trial, codec), opened: 'answer' in trial.outcome(codec, token) };
}

function tell(seen: object): void {
  process.send?.(seen, () => process.exit());
}

(task.mark === undefined ? seal(task.seed, task.token) : probe(task.mark)).then(tell, (error: unknown) =>
  tell({ failed: error instanceof Error ? error.name : 'something' }),
);
