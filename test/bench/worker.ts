/**
 * One contender in its own process, so that its garbage costs no other contender time. Its argument is the
 * contender's name; it answers each line on standard input, a {@link Turn} in JSON, with a line that is a
 * {@link TurnResult}.
 */
import { PerformanceObserver, performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { setImmediate as macrotask } from 'node:timers/promises';
import { type Contender, startContender } from './contenders/index.ts';
import { payloadOf } from './payload.ts';

export interface Turn {
  readonly operation: 'seal' | 'unseal';
  readonly bytes: number;
  /** Approximate length; or the number of operations whose memory is counted. */
  readonly milliseconds?: number;
  readonly memoryOf?: number;
}

export interface TurnResult {
  /** Per operation, of a batch without a clock inside it. Nanoseconds. */
  readonly nanoseconds: number;
  /** Operations timed one by one. Nanoseconds. */
  readonly samples: readonly number[];
  /** Garbage collection during the turn, per operation. Nanoseconds. */
  readonly collecting: number;
  readonly tokenLength: number;
  /** Bytes on the heap, and outside it, per operation. */
  readonly memory?: { readonly heap: number; readonly external: number };
}

const BATCH_SHARE = 0.7;
const FIRST_BATCH = 4;

let collectedMs = 0;
const observer = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collectedMs += duration;
});
observer.observe({ entryTypes: ['gc'] });

/** The operation on a payload of this size, checked once. */
async function operationOf(contender: Contender, { operation, bytes }: Turn) {
  const { payload, text } = payloadOf(bytes);
  const sealed = await contender.seal(payload, text);
  if (!contender.isPayload(await contender.unseal(sealed), payload, text)) {
    throw new Error('it does not unseal its own token');
  }
  const call = operation === 'seal' ? () => contender.seal(payload, text) : () => contender.unseal(sealed);
  return { call, tokenLength: contender.lengthOf(sealed) };
}

/** Nanoseconds of all of them, one after another. */
async function batch(call: () => unknown, count: number): Promise<number> {
  const started = process.hrtime.bigint();
  if (call() instanceof Promise) {
    for (let i = 0; i < count; i++) await call();
  } else {
    for (let i = 0; i < count; i++) call();
  }
  return Number(process.hrtime.bigint() - started);
}

async function oneByOne(call: () => unknown, milliseconds: number): Promise<number[]> {
  const samples: number[] = [];
  const until = performance.now() + milliseconds;
  while (performance.now() < until) {
    const started = process.hrtime.bigint();
    const result = call();
    if (result instanceof Promise) await result;
    samples.push(Number(process.hrtime.bigint() - started));
  }
  return samples;
}

async function take(contender: Contender, turn: Turn): Promise<TurnResult> {
  const { call, tokenLength } = await operationOf(contender, turn);
  const { milliseconds = 0, memoryOf } = turn;
  if (memoryOf !== undefined) {
    await batch(call, memoryOf);
    // The second collection frees buffers that are garbage.
    for (let i = 0; i < 2; i++) {
      globalThis.gc?.();
      await macrotask();
    }
    const before = process.memoryUsage();
    await batch(call, memoryOf);
    const after = process.memoryUsage();
    const per = (bytes: number): number => bytes / (memoryOf + 1);
    const memory = { heap: per(after.heapUsed - before.heapUsed), external: per(after.external - before.external) };
    return { nanoseconds: 0, samples: [], collecting: 0, tokenLength, memory };
  }
  let count = FIRST_BATCH;
  let nanoseconds = await batch(call, count);
  const wanted = milliseconds * BATCH_SHARE * 1e6;
  count = Math.max(FIRST_BATCH, Math.min(200_000, Math.round((wanted / nanoseconds) * count)));
  await macrotask();
  collectedMs = 0;
  nanoseconds = await batch(call, count);
  const samples = await oneByOne(call, milliseconds * (1 - BATCH_SHARE));
  // The observer is notified of collections afterwards.
  await macrotask();
  const collecting = (collectedMs * 1e6) / (count + samples.length);
  return { nanoseconds: nanoseconds / (count + 1), samples, collecting, tokenLength };
}

const contender = await startContender(process.argv[2] ?? '');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await take(contender, JSON.parse(line)))}\n`);
}
await contender.close?.();
