import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { RequestStateCodec } from '@sealring/core';
import { builtIns, globalsNow, observe, patches } from '../observe.ts';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { encodings, reachableFrom } from '../secrets.ts';
import { expectNoTimers, watchOutput } from '../watch.ts';
import { type ProbedCodec, probeModule } from './processes.ts';
import { answerOf, type CodecChecks, type CodecTrial, usedBy, useOnce, useWhole } from './trial.ts';

const USES = 120;
const FORGOTTEN = 16;
const FORGOTTEN_BYTES = 48;
/** Minimum length of a payload to search for. A codec may accept only shorter ones, which may recur by chance. */
const LEAST_TELLING = 8;

/** Checks for side effects of sealing, unsealing and refusals, in a separate process if the target is a module. */
export const PURITY_CHECKS: CodecChecks = {
  'CODEC-QUIET': leaves(({ printed }) => (printed > 0 ? `${printed} characters were printed` : '')),
  'CODEC-NO-TIMERS': leaves(({ resources }) => (resources.length > 0 ? `left behind: ${resources.join(', ')}` : '')),
  'CODEC-NO-GLOBALS': leaves(({ globals }) => (globals.length > 0 ? `changed: ${globals.slice(0, 5).join(', ')}` : '')),
  'CODEC-NO-IO': leaves(({ calls }) => (calls.length > 0 ? `called: ${calls.slice(0, 5).join(', ')}` : '')),
  // In this process, an attempt to exit is caught and reported; a separate process ends.
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
  'CODEC-NOT-KEPT': async (trial) => {
    const codec = await trial.create();
    expectNoCopy(trial, codec);
    const collect = collector();
    if (collect === undefined) throw new NotApplicable('this runtime does not expose its garbage collector');
    const sealed = sealAndForget(trial, codec);
    for (let i = 0; i < 3; i++) {
      // A payload lives at least until the end of the task that has used it.
      await pause(1);
      collect();
    }
    const kept = sealed.filter((payload) => payload.deref() !== undefined).length;
    // The last payload may still be on the stack.
    expectThat(kept <= 1, `${kept} of ${FORGOTTEN} payloads are still referenced after seal`);
  },
  'CODEC-CLOSES': async (trial) => {
    useOnce(await trial.create());
    await trial.expectCloses();
  },
};

/** @throws {Finding} if a member of the codec holds a payload that it sealed. */
function expectNoCopy(trial: CodecTrial, codec: RequestStateCodec): void {
  const payload = trial.bytes(FORGOTTEN_BYTES);
  trial.seal(codec, payload);
  if (payload.length < LEAST_TELLING) return;
  const forms = encodings(payload);
  const isVisible = reachableFrom(codec).some((member) => {
    const content = types.isUint8Array(member) ? Buffer.from(member).toString('latin1') : member;
    return typeof content === 'string' && forms.some((form) => content.includes(form));
  });
  expectThat(!isVisible, 'a member of the codec holds the payload after seal');
}

/** Runs the garbage collector, if the runtime exposes it. */
function collector(): (() => void) | undefined {
  // If gc is already exposed, the process has the flag, which must then not be reset.
  const own = globalThis.gc;
  if (own !== undefined) return () => own();
  try {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('globalThis.gc');
    setFlagsFromString('--no-expose-gc');
    return typeof collect === 'function' ? () => void collect() : undefined;
  } catch {
    return undefined;
  }
}

/** Seals payloads in a separate function, so that no variable refers to them later. @returns weak references. */
function sealAndForget(trial: CodecTrial, codec: RequestStateCodec): readonly WeakRef<Uint8Array>[] {
  return Array.from({ length: FORGOTTEN }, () => {
    const payload = trial.bytes(FORGOTTEN_BYTES);
    answerOf(() => codec.seal(payload));
    return new WeakRef(payload);
  });
}

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
  const used = await usedBy(trial);
  let printed = 0;
  const left = observe(() => {
    const watched = watchOutput(false);
    try {
      useWhole(used);
    } finally {
      watched.stop();
    }
    printed += watched.printed().length + watched.bytes().length;
  }, since);
  return { ...left, printed, globals: [...new Set([...left.globals, ...patches(before)])] };
}
