/**
 * The process that holds the target: it may print, hang or end itself, and the command line lives on. It is asked one
 * thing at a time, and ends when nobody is left to ask.
 */
import { types } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { SuiteName } from '../report.ts';
import { scriptBeside } from '../target-module.ts';
import { type LoadedTarget, loadTarget } from './load-target.ts';
import type { Answer, Numbered, Request, TrialOptions } from './messages.ts';
import { tryRequirement } from './suites.ts';
import { UsageError } from './usage-error.ts';

interface Held extends LoadedTarget {
  readonly suite: SuiteName;
  readonly options: TrialOptions;
}

let held: Held | undefined;

async function answer(request: Request): Promise<Answer> {
  switch (request.kind) {
    case 'open': {
      const { suite, source, options } = request;
      held = { ...(await loadTarget(source, options)), suite, options };
      const { name } = held.target as { readonly name?: unknown };
      return { kind: 'opened', name: typeof name === 'string' ? name : '' };
    }
    case 'try': {
      if (held === undefined) throw new Error('a requirement was requested before the target was loaded');
      const { results } = await tryRequirement(held.suite, held, held.options, request.id);
      const [result] = results;
      if (result === undefined) throw new Error(`${request.id} has no result`);
      return { kind: 'tried', result };
    }
    case 'close':
      await held?.close();
      return { kind: 'closed' };
  }
}

function refusalOf(error: unknown, { kind }: Request): Answer {
  if (error instanceof UsageError) return { kind: 'refused', message: error.message };
  // A suite refuses a target or an option: its own words, without the name of the function.
  if (kind !== 'close' && (error instanceof TypeError || error instanceof RangeError)) {
    return { kind: 'refused', message: error.message.replace(/^run\w+Conformance: /, '') };
  }
  return { kind: 'crashed', name: nameOf(error) };
}

function nameOf(error: unknown): string {
  return types.isNativeError(error) ? error.name : 'a value that is not an Error';
}

let last = 0;

function send(request: number, body: Answer, sent: () => void = () => undefined): void {
  process.send?.({ request, body } satisfies Numbered<Answer>, sent);
}

// `disconnect` is not emitted while the target hangs.
new Worker(scriptBeside(import.meta.url, 'parent-watch'), {
  workerData: { parent: process.ppid, ownGroup: process.platform !== 'win32' },
  execArgv: [],
}).unref();

process.on('message', ({ request, body }: Numbered<Request>) => {
  last = request;
  answer(body).then(
    (answered) => send(request, answered),
    (error: unknown) => send(request, refusalOf(error, body)),
  );
});
// Its text and stack may show a secret: only the name is reported, and nothing is printed.
process.on('uncaughtException', (error) => {
  send(last, { kind: 'crashed', name: nameOf(error) }, () => process.exit(1));
});
process.on('disconnect', () => process.exit(0));
