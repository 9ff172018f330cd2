import type { ExecCodecOptions } from '../exec/codec-target.ts';
import type { ConformanceResult, SuiteName } from '../requirement.ts';

/** Exit codes. A run that a signal ended exits with code 128 plus the signal's number, as in shells. */
export const EXIT_CODE = { passed: 0, failed: 1, usage: 2, SIGINT: 130, SIGTERM: 143 } as const;

export type ExitCode = (typeof EXIT_CODE)[keyof typeof EXIT_CODE];

/** An error in the command line or its target. The message has one line. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export type TargetSource = { readonly module: string } | ProgramSource;

export interface ProgramSource {
  readonly exec: string;
  readonly claims: ProgramClaims;
}

/** Capabilities of a codec. A module declares them itself; for a program, options on the command line declare them. */
export type ProgramClaims = Pick<ExecCodecOptions, 'supports' | 'rotated'>;

export interface TrialOptions {
  readonly seed: number;
  readonly timeoutMs: number;
  readonly rounds: number | undefined;
  readonly writers: number | undefined;
}

/**
 * Requests from the command line to the process of the target. Each request is answered before the next one is sent.
 */
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
  /** The target cannot be used. The message has one line. */
  | { readonly kind: 'refused'; readonly message: string }
  /** An uncaught error: its class and line. The process ends. */
  | { readonly kind: 'crashed'; readonly thrown: string };

/**
 * Messages between the command line and the process of the target. The number distinguishes answers from messages that
 * a target itself sends.
 */
export interface Numbered<Body> {
  readonly request: number;
  readonly body: Body;
}
