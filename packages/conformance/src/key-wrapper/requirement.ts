import { must as mustOf, should as shouldOf, type Tried, type TriedRequirement } from '../requirement.ts';
import type { KeyWrapperTrial } from './trial.ts';

/** The calls of a key wrapper. */
export type Operation = 'wrap' | 'unwrap' | 'generate' | 'sign' | 'verify' | 'owns' | 'close';

/** What a requirement of key wrappers is tried with. */
export interface KeyWrapperTried extends Tried {
  /** Calls that are held to the requirement. */
  readonly calls: readonly Operation[];
}

/** A requirement of key wrappers: its text, its check, and what the check covers. */
export interface KeyWrapperRequirement extends TriedRequirement<KeyWrapperTrial> {
  readonly tried: KeyWrapperTried;
}

/** Cells that most requirements have in common. */
const USUAL = {
  bytes: 'random data keys: others do not matter here, see WRAP-ROUNDTRIP',
  lengths: 'as the ring hands it over, 32 or 64 bytes: others are refused, see WRAP-KEY-LENGTH',
  order: 'on a fresh instance, after one good wrap and unwrap',
  latency: 'the service’s own',
} as const;

/**
 * The cells of a requirement; {@link USUAL} where nothing else is said.
 *
 * @param others - Why the other calls are not held to it; empty where there are none.
 */
export function tried(words: string, others: string, cells: Partial<Tried> = {}): KeyWrapperTried {
  const calls = words.split(' ') as Operation[];
  const operations = calls.join(', ') + (others === '' ? '' : `. The others are left out: ${others}`);
  return { ...USUAL, ...cells, calls, operations };
}

/** Why calls are left out, where several requirements have the same reason. */
export const LOCAL_CALLS = 'verify and owns make no call to the service, close has a requirement of its own';
export const NO_BYTES = 'none are looked at';

type Run = KeyWrapperRequirement['run'];

export const must = (
  id: string,
  text: string,
  source: string,
  cells: KeyWrapperTried,
  run: Run,
): KeyWrapperRequirement => mustOf<KeyWrapperRequirement>(id, text, source, { tried: cells, run });

export const should = (
  id: string,
  text: string,
  source: string,
  cells: KeyWrapperTried,
  run: Run,
): KeyWrapperRequirement => shouldOf<KeyWrapperRequirement>(id, text, source, { tried: cells, run });

/** Where requirements come from. */
export const CONTRACT = 'KeyWrapper of @sealring/core';
export const RING = 'Sealring ring document: what it stores of a wrapped key';
export const KIT = 'Sealring conformance kit';

export function clause(...numbers: readonly number[]): string {
  return numbers.map((number) => `${CONTRACT}, clause ${number}`).join('; ');
}
