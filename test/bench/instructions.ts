import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { requireCommand } from '../support/redis.ts';
import type { Verdict } from './verdict.ts';

/*
 * Guards the token path without noise: counts machine instructions with valgrind's callgrind. `perf stat` would be
 * faster, but most virtual machines have no such counters.
 *
 * Switches off the parts of V8 that depend on chance or other threads. One is the optimizing compiler, which functions
 * reach one by one over fifteen thousand tokens: one more compilation within the count would cost as much as hundreds
 * of tokens. Nothing is collected during the count, because a collection is a large step at a varying moment; bytes on
 * the heap are counted instead.
 */
const V8_FLAGS = [
  '--predictable',
  '--single-threaded',
  '--hash-seed=1',
  '--random-seed=1',
  '--no-turbofan',
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
];
/** The function behind `process.memoryUsage()`. callgrind writes its count there, and starts a new one. */
const MARK = 'node::MemoryUsage(*';
/** The parts between the marks: until the first, seals, unseals. */
const PARTS = 3;
const LOOP = fileURLToPath(new URL('./instructions-loop.ts', import.meta.url));
const BASELINE = fileURLToPath(new URL('./instructions.json', import.meta.url));
const LONGEST_MS = 300_000;

/**
 * Ten counts on a busy machine differed by one instruction, and those in another folder by 0.05 %. The rest of the
 * limit is for the C library and the processor, which choose between ways to copy and to allocate.
 */
const TOLERANCE = 0.02;
export const RENEW = 'SEALRING_RENEW_INSTRUCTIONS=1 npm test -- bench/instructions';

const OPERATIONS = ['seal', 'unseal'] as const;
const COUNTS = { instructions: 'instructions', heapBytes: 'bytes on the heap' } as const;

/** Per operation. */
export type TokenCounts = Readonly<Record<keyof typeof COUNTS, number>>;

/** The counts, and the build of Node: another build has other counts. */
export interface Counted {
  /** As in `v24.21.0 linux x64`. */
  readonly node: string;
  /** Maker, family and model: OpenSSL, the C library and V8 choose their code by it. */
  readonly processor: string;
  readonly payloadBytes: number;
  readonly operations: Readonly<Record<(typeof OPERATIONS)[number], TokenCounts>>;
}

export interface InstructionsReport extends Counted {
  readonly baseline: Counted;
}

export interface InstructionsOptions {
  /** Default 358. */
  readonly payloadBytes?: number;
  /** Operations before the count, which compile everything that they call. Default 2 000. */
  readonly warmUp?: number;
  /** Operations in the count. Default 2 000. */
  readonly count?: number;
  /** Default: the committed one. */
  readonly baseline?: Counted;
}

/** The build of Node that runs this. */
export const NODE = `${process.version} ${process.platform} ${process.arch}`;

/** The processor that runs this, as Linux names it. */
export const PROCESSOR: string = processor();

function processor(): string {
  const text = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : '';
  return ['vendor_id', 'cpu family', 'model']
    .map((name) => new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(text)?.[1] ?? 'unknown')
    .join(' ');
}

/**
 * Counts the instructions of a seal and of an unseal, in a process that takes about ten seconds.
 * @throws {MissingPrerequisite} without valgrind.
 */
export async function measureInstructions(
  { payloadBytes = 358, warmUp = 2_000, count = 2_000, baseline }: InstructionsOptions = {},
  progress: (done: number) => void = () => undefined,
): Promise<InstructionsReport> {
  await requireCommand('valgrind', 'valgrind');
  const folder = await mkdtemp(join(tmpdir(), 'sealring-instructions-'));
  try {
    const loop = [LOOP, payloadBytes, warmUp, count].map(String);
    const heapBytes: unknown = JSON.parse(await underCallgrind(join(folder, 'part'), loop));
    const [, ...instructions] = await Promise.all(
      Array.from({ length: PARTS }, (_, i) => instructionsIn(join(folder, `part.${i + 1}`))),
    );
    progress(1);
    const of = (part: number): TokenCounts => ({
      instructions: perOperation(instructions[part], count),
      heapBytes: perOperation(Array.isArray(heapBytes) ? heapBytes[part] : undefined, count),
    });
    return {
      node: NODE,
      processor: PROCESSOR,
      payloadBytes,
      operations: { seal: of(0), unseal: of(1) },
      baseline: baseline ?? (await committedBaseline()),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Compares the counts with the baseline. Fewer are not a defect, but only a new baseline keeps the improvement. */
export function judgeInstructions({
  node,
  payloadBytes,
  operations,
  baseline,
}: InstructionsReport): readonly Verdict[] {
  const renewal = `renew the baseline: ${RENEW}`;
  if (baseline.node !== node || baseline.payloadBytes !== payloadBytes) {
    const [was, is] = [baseline, { node, payloadBytes }].map((one) => `${one.payloadBytes} bytes on Node ${one.node}`);
    return [{ law: `the baseline is of ${was}, and this is ${is}: ${renewal}`, limit: 0, measured: 1, met: false }];
  }
  return OPERATIONS.flatMap((operation) =>
    (Object.keys(COUNTS) as (keyof TokenCounts)[]).map((kind): Verdict => {
      const [now, before] = [operations[operation][kind], baseline.operations[operation][kind]];
      const measured = Math.abs(now / before - 1);
      const change = `${now.toFixed(0)} now, ${before.toFixed(0)} in the baseline`;
      return {
        law: `${COUNTS[kind]} of one ${operation}, relative change: ${change}; if that is meant, ${renewal}`,
        limit: TOLERANCE,
        measured,
        met: measured <= TOLERANCE,
      };
    }),
  );
}

export async function committedBaseline(): Promise<Counted> {
  return JSON.parse(await readFile(BASELINE, 'utf8'));
}

export async function renewBaseline({ node, processor: model, payloadBytes, operations }: Counted): Promise<void> {
  await writeFile(BASELINE, `${JSON.stringify({ node, processor: model, payloadBytes, operations }, undefined, 2)}\n`);
}

/** Runs Node with output files that begin with `out`, one per part, and returns its standard output. */
async function underCallgrind(out: string, args: readonly string[]): Promise<string> {
  const callgrind = ['--tool=callgrind', '--vgdb=no', `--callgrind-out-file=${out}`, `--dump-before=${MARK}`];
  // The environment is empty, because options that the test runner sets for its processes would change the loop.
  const options = { env: { PATH: process.env['PATH'] }, timeout: LONGEST_MS, killSignal: 'SIGKILL' } as const;
  const command = [...callgrind, process.execPath, ...V8_FLAGS, ...args];
  return (await promisify(execFile)('valgrind', command, options)).stdout;
}

async function instructionsIn(part: string): Promise<number> {
  // The totals are at its beginning; the rest, by function, has megabytes.
  return Number(/^summary: (\d+)$/m.exec(await readFile(part, 'latin1'))?.[1]);
}

function perOperation(total: unknown, count: number): number {
  if (typeof total !== 'number' || !(total > 0)) throw new Error(`nothing was counted: does Node still call ${MARK}?`);
  return Math.round(total / count);
}
