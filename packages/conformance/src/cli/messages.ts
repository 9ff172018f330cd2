import type { ExecCodecOptions } from '../exec/codec-target.ts';
import type { ConformanceResult, SuiteName } from '../requirement.ts';

/** How a run ends. One that a signal ended has 128 and the signal's number, as shells have it. */
export const EXIT_CODE = { passed: 0, failed: 1, usage: 2, SIGINT: 130, SIGTERM: 143 } as const;

export type ExitCode = (typeof EXIT_CODE)[keyof typeof EXIT_CODE];

/** The command line, or the target it names, is wrong: one line that says what, and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export type TargetSource = { readonly module: string } | ProgramSource;

export interface ProgramSource {
  readonly exec: string;
  readonly claims: ProgramClaims;
}

/** What the program of a codec cannot say of itself, as the module of a target does. */
export type ProgramClaims = Pick<ExecCodecOptions, 'supports' | 'rotated'>;

export interface TrialOptions {
  readonly seed: number;
  readonly timeoutMs: number;
  readonly rounds: number | undefined;
  readonly writers: number | undefined;
}

/** What the command line asks of the process that holds the target. One at a time: each is answered. */
export type Request =
  | {
      readonly kind: 'open';
      readonly suite: SuiteName;
      readonly source: TargetSource;
      readonly options: TrialOptions;
    }
  | { readonly kind: 'try'; readonly id: string }
  | { readonly kind: 'close' };

export type Answer =
  | { readonly kind: 'opened'; readonly name: string }
  | { readonly kind: 'tried'; readonly result: ConformanceResult }
  | { readonly kind: 'closed' }
  /** The target cannot be used at all: one line. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Something was thrown that no call was there to catch: its class and line. The process ends. */
  | { readonly kind: 'crashed'; readonly thrown: string };

/** Messages of the channel: numbered, so that an answer is distinguished from messages that a target itself sends. */
export interface Numbered<Body> {
  readonly request: number;
  readonly body: Body;
}
