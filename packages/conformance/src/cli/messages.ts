import type { ExecOptions } from '../exec/target.ts';
import type { ConformanceResult, SuiteName } from '../report.ts';

/** Where the target of a run comes from. */
export type TargetSource = { readonly module: string } | { readonly exec: string; readonly claims: ProgramClaims };

/** What a program cannot say of itself, as the module of a target does. */
export type ProgramClaims = Pick<ExecOptions, 'supports' | 'rotated'>;

/** How each requirement is tried. */
export interface TrialOptions {
  readonly seed: number;
  readonly timeoutMs: number;
  readonly rounds?: number;
  readonly writers?: number;
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
  /** Something was thrown that no call was there to catch: its name. The process ends. */
  | { readonly kind: 'crashed'; readonly name: string };

/** Messages of the channel: numbered, so that an answer is distinguished from messages that a target itself sends. */
export interface Numbered<Body> {
  readonly request: number;
  readonly body: Body;
}
