import { type Check, expectThat } from '../requirement.ts';
import { observe } from './observe.ts';
import { type ProbedCodec, probeModule } from './probed.ts';
import { type CodecTrial, useOnce } from './trial.ts';

/** What a seal, an unseal and a refusal leave behind: in a process of their own where the target is a module. */
export const PURITY_CHECKS: readonly Check<CodecTrial>[] = [
  {
    id: 'CODEC-QUIET',
    async run(trial) {
      const { printed } = await seenOf(trial);
      expectThat(printed === 0, `something was printed: ${printed} characters`);
    },
  },
  {
    id: 'CODEC-NO-TIMERS',
    async run(trial) {
      const { resources } = await seenOf(trial);
      expectThat(resources.length === 0, `left behind: ${resources.join(', ')}`);
    },
  },
  {
    id: 'CODEC-NO-GLOBALS',
    async run(trial) {
      const { globals } = await seenOf(trial);
      expectThat(globals.length === 0, `changed: ${globals.slice(0, 5).join(', ')}`);
    },
  },
  {
    id: 'CODEC-NO-EXIT',
    async run(trial) {
      // Here an attempt is caught and told; in another process it ends that.
      await seenOf(trial);
    },
  },
];

async function seenOf(trial: CodecTrial): Promise<ProbedCodec> {
  const { module } = trial.subject;
  if (module !== undefined) return probeModule(module);
  const codec = await trial.create();
  let printed = 0;
  const left = observe(() => {
    printed += watchOutput(() => useOnce(codec)).length;
  });
  return { ...left, printed };
}

/** What `run` prints. A console may have a stream of its own, as under a test runner: it is watched, too. */
function watchOutput(run: () => void): string {
  let printed = '';
  const note = (...words: unknown[]): true => {
    printed += words.map(String).join(' ');
    return true;
  };
  const watched = [
    watch(process.stdout, ['write'], note),
    watch(process.stderr, ['write'], note),
    watch(console, ['log', 'info', 'warn', 'error', 'debug'], note),
  ];
  try {
    run();
  } finally {
    for (const restore of watched) restore();
  }
  return printed;
}

/** Puts `note` in place of some methods; returns what puts them back. */
function watch(holder: object, names: readonly string[], note: (...words: unknown[]) => true): () => void {
  const own = names.map((name) => Object.getOwnPropertyDescriptor(holder, name));
  for (const name of names) Object.defineProperty(holder, name, { value: note, configurable: true, writable: true });
  return () => {
    for (const [i, name] of names.entries()) {
      const descriptor = own[i];
      if (descriptor === undefined) Reflect.deleteProperty(holder, name);
      else Object.defineProperty(holder, name, descriptor);
    }
  };
}
