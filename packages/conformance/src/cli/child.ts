/**
 * The process of the target: it may print, hang or exit without ending the command line. It handles one request
 * at a time, and ends when the parent process is gone.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import { Worker } from 'node:worker_threads';
import { execCodecTarget } from '../exec/codec-target.ts';
import { execKeyWrapperTarget } from '../exec/key-wrapper-target.ts';
import { execRingStoreTarget } from '../exec/ring-store-target.ts';
import { DidNotStart, type SuiteName } from '../requirement.ts';
import { exportedTarget, scriptBeside } from '../target-module.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import {
  type Answer,
  type Numbered,
  type ProgramSource,
  type Request,
  type TargetSource,
  type TrialOptions,
  UsageError,
} from './messages.ts';
import { SUITES } from './suites.ts';

interface LoadedTarget {
  readonly target: unknown;
  /** The file URL of the target module, for suites that also load it in other processes. */
  readonly module?: string;
  /** Ends everything that was started for the target. */
  close(): Promise<void>;
}

/** A program counts as hung if it takes more than this number of milliseconds for one answer. */
const LONGEST_ANSWER_MS: Readonly<Record<SuiteName, number>> = {
  codec: 10_000,
  'key-wrapper': 30_000,
  'ring-store': 30_000,
  'single-use': 0,
};

/** @throws {UsageError} if the target cannot be loaded. */
async function loadTarget(suite: SuiteName, source: TargetSource, { timeoutMs }: TrialOptions): Promise<LoadedTarget> {
  if ('module' in source) return loadModule(source.module);
  const longestMs = Math.min(timeoutMs, LONGEST_ANSWER_MS[suite]);
  try {
    const target = await startProgram(suite, source, longestMs);
    return { target, close: () => target.close() };
  } catch (error) {
    throw error instanceof DidNotStart ? new UsageError(error.message) : error;
  }
}

async function startProgram(
  suite: SuiteName,
  { exec, claims }: ProgramSource,
  timeoutMs: number,
): Promise<{ close(): Promise<void> }> {
  if (suite === 'key-wrapper') return execKeyWrapperTarget(exec, { timeoutMs });
  if (suite === 'ring-store') return execRingStoreTarget(exec, { timeoutMs });
  const target = execCodecTarget(exec, { timeoutMs, ...claims });
  try {
    await target.create();
  } catch (error) {
    // The requirements report all other failures.
    if (!(error instanceof DidNotStart)) return target;
    await target.close();
    throw error;
  }
  return target;
}

async function loadModule(path: string): Promise<LoadedTarget> {
  const { href: module } = pathToFileURL(resolve(path));
  const exported = await importModule(path, module);
  const [named, { close }] = [exportedTarget(exported), exported];
  if (named === undefined) throw new UsageError(`${path} exports no target: export one as default or as target`);
  if (close !== undefined && typeof close !== 'function') throw new UsageError(`${path}: close must be a function`);
  const target = await makeTarget(path, module, named);
  if (typeof target !== 'object' || target === null) {
    throw new UsageError(
      `${path}: the target must be an object, a function that creates one, or a promise of one, got ${kindOf(target)}`,
    );
  }
  return { target, module, close: async () => void (await (close as (() => unknown) | undefined)?.()) };
}

async function importModule(path: string, module: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(module);
  } catch (error) {
    throw new UsageError(`cannot load ${path}: ${nameAndPlace(error, module)}`);
  }
}

async function makeTarget(path: string, module: string, named: unknown): Promise<unknown> {
  try {
    return await (typeof named === 'function' ? named() : named);
  } catch (error) {
    throw new UsageError(`the target of ${path} could not be created: ${nameAndPlace(error, module)}`);
  }
}

/** The name of an error and its line; the message only if the loader threw it, since any other may contain a secret. */
function nameAndPlace(error: unknown, module: string): string {
  if (!types.isNativeError(error)) return 'the module threw a value that is not an Error';
  const { code } = error as NodeJS.ErrnoException;
  const isLoaders = error.name === 'SyntaxError' || code?.startsWith('ERR_MODULE') === true;
  const text = isLoaders ? `${error.name}: ${error.message.split('\n')[0] ?? ''}` : error.name;
  const place = error.stack?.split('\n').find((line) => line.includes(module));
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1];
  const hint = text.includes('outside a module') ? ': set "type": "module" in the nearest package.json' : '';
  return `${text}${line === undefined ? '' : ` in line ${line}`}${hint}`;
}

interface Held extends LoadedTarget {
  readonly suite: SuiteName;
  readonly options: TrialOptions;
}

let held: Held | undefined;

async function answer(request: Request): Promise<Answer> {
  switch (request.kind) {
    case 'open': {
      const { suite, source, options } = request;
      held = { ...(await loadTarget(suite, source, options)), suite, options };
      const { name } = held.target as { readonly name?: unknown };
      return { kind: 'opened', name: typeof name === 'string' ? name : '' };
    }
    case 'try': {
      if (held === undefined) throw new Error('a requirement was requested before the target was loaded');
      const { suite, target, module } = held;
      // A codec is also checked in other processes.
      const elsewhere = suite === 'codec' && module !== undefined ? { module } : {};
      const options = { ...held.options, ...elsewhere, only: [request.id] };
      const { results } = await SUITES[suite].run(target as never, options as never);
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
  // A suite refused a target or an option: its message is passed on, without the name of the function.
  if (kind !== 'close' && (error instanceof TypeError || error instanceof RangeError)) {
    return { kind: 'refused', message: error.message.replace(/^run\w+Conformance: /, '') };
  }
  return { kind: 'crashed', thrown: describeThrown(error) };
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
// The message and the stack may contain a secret, so only the class and the line are reported, and nothing is printed.
process.on('uncaughtException', (error) => {
  send(last, { kind: 'crashed', thrown: describeThrown(error) }, () => process.exit(1));
});
process.on('disconnect', () => process.exit(0));
