import { setTimeout as pause } from 'node:timers/promises';
import { type Check, expectThat } from '../requirement.ts';
import { expectNoTimers, watchOutput } from '../watch.ts';
import { builtIns, globalsNow, observe, patches } from './observe.ts';
import { type ProbedCodec, probeModule } from './processes.ts';
import { type CodecChecks, type CodecTrial, useOnce } from './trial.ts';

const USES = 120;

/** Side effects of sealing, unsealing and refusals: in a separate process if the target is a module. */
export const PURITY_CHECKS: CodecChecks = {
  'CODEC-QUIET': leaves(({ printed }) => (printed > 0 ? `${printed} characters were printed` : '')),
  'CODEC-NO-TIMERS': leaves(({ resources }) => (resources.length > 0 ? `left behind: ${resources.join(', ')}` : '')),
  'CODEC-NO-GLOBALS': leaves(({ globals }) => (globals.length > 0 ? `changed: ${globals.slice(0, 5).join(', ')}` : '')),
  'CODEC-NO-IO': leaves(({ calls }) => (calls.length > 0 ? `called: ${calls.slice(0, 5).join(', ')}` : '')),
  // In this process an attempt is caught and reported; a separate process ends.
  'CODEC-NO-EXIT': leaves(() => ''),
  'CODEC-ENDS': async (trial) => {
    await expectNoTimers(async () => {
      const codec = await trial.create();
      for (let i = 0; i < USES; i++) useOnce(codec);
      // Includes timers that the codec starts asynchronously.
      await pause(1);
      await trial.close();
    });
  },
  'CODEC-CLOSES': async (trial) => {
    useOnce(await trial.create());
    await trial.expectCloses();
  },
};

function leaves(findingOf: (seen: ProbedCodec) => string): Check<CodecTrial> {
  return async (trial) => {
    const finding = findingOf(await seenOf(trial));
    expectThat(finding === '', finding);
  };
}

async function seenOf(trial: CodecTrial): Promise<ProbedCodec> {
  const { module } = trial;
  if (module !== undefined) return probeModule(module);
  const [before, since] = [builtIns(), globalsNow()];
  const codec = await trial.create();
  let printed = 0;
  const left = observe(() => {
    const watched = watchOutput(false);
    try {
      useOnce(codec);
    } finally {
      watched.stop();
    }
    printed += watched.printed().length + watched.bytes().length;
  }, since);
  return { ...left, printed, globals: [...new Set([...left.globals, ...patches(before)])] };
}
