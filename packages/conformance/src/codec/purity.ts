import { setTimeout as pause } from 'node:timers/promises';
import { type CheckedRequirement, expectThat, must, should } from '../requirement.ts';
import { expectNoTimers, watchOutput } from '../watch.ts';
import { builtIns, observe, patches } from './observe.ts';
import { type ProbedCodec, probeModule } from './processes.ts';
import { CONTRACT, type CodecTrial, KIT, useOnce } from './trial.ts';

/** Uses of a codec: a timer may start with the hundredth. */
const USES = 120;

/** What sealing, unsealing and refusals leave behind: in a process of their own where the target is a module. */
export const PURITY_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  should('CODEC-QUIET', 'seal and unseal print nothing.', KIT, async (trial) => {
    const { printed } = await seenOf(trial);
    expectThat(printed === 0, `something was printed: ${printed} characters`);
  }),
  should('CODEC-NO-TIMERS', 'seal and unseal leave no timers and no handles behind.', KIT, async (trial) => {
    const { resources } = await seenOf(trial);
    expectThat(resources.length === 0, `left behind: ${resources.join(', ')}`);
  }),
  should(
    'CODEC-NO-GLOBALS',
    'seal and unseal leave globals, built-ins, environment, settings and listeners as they were.',
    KIT,
    async (trial) => {
      const { globals } = await seenOf(trial);
      expectThat(globals.length === 0, `changed: ${globals.slice(0, 5).join(', ')}`);
    },
  ),
  must('CODEC-NO-EXIT', 'seal and unseal leave the process running.', CONTRACT, async (trial) => {
    // Here an attempt is caught and reported; in another process it ends that process.
    await seenOf(trial);
  }),
  should('CODEC-ENDS', 'A codec that was closed leaves no timer that keeps the process alive.', KIT, async (trial) => {
    await expectNoTimers(async () => {
      const codec = await trial.create();
      for (let i = 0; i < USES; i++) useOnce(codec);
      // What it starts later than at once.
      await pause(1);
      await trial.close();
    });
  }),
  must('CODEC-CLOSES', 'The target’s close of an instance ends.', KIT, async (trial) => {
    useOnce(await trial.create());
    await trial.expectCloses();
  }),
];

async function seenOf(trial: CodecTrial): Promise<ProbedCodec> {
  const { module } = trial;
  if (module !== undefined) return probeModule(module);
  const before = builtIns();
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
  });
  return { ...left, printed, globals: [...new Set([...left.globals, ...patches(before)])] };
}
