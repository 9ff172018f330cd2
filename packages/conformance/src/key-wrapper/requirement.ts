import { type CheckedRequirement, must as mustOf, should as shouldOf } from '../requirement.ts';
import type { KeyWrapperTrial } from './trial.ts';

/** The calls of a key wrapper. */
export type Operation = 'wrap' | 'unwrap' | 'generate' | 'sign' | 'verify' | 'owns' | 'close';

/** What a requirement is tried with: each cell says what is tried, or why nothing else is. */
export interface Tried {
  /** Calls that are held to the requirement. */
  readonly operations: readonly Operation[];
  /** Why the other calls are not. */
  readonly others?: string;
  readonly bytes: string;
  readonly lengths: string;
  readonly order: string;
  readonly latency: string;
}

/** A requirement of key wrappers: its text, its check, and what the check covers. */
export interface KeyWrapperRequirement extends CheckedRequirement<KeyWrapperTrial> {
  readonly tried: Tried;
}

/** Cells that most requirements have in common. */
const USUAL = {
  bytes: 'random data keys: others do not matter here, see WRAP-ROUNDTRIP',
  lengths: 'as the ring hands it over, 32 or 64 bytes: others are refused, see WRAP-KEY-LENGTH',
  order: 'on a fresh instance, after one good wrap and unwrap',
  latency: 'the service’s own',
} as const;

/** The cells of a requirement; {@link USUAL} where nothing else is said. */
export function tried(
  operations: string,
  others: string,
  cells: Partial<typeof USUAL> | Record<string, string> = {},
): Tried {
  const words = operations.split(' ') as Operation[];
  return { ...USUAL, ...cells, operations: words, ...(others !== '' && { others }) };
}

/** Why calls are left out, where several requirements have the same reason. */
export const LOCAL_CALLS = 'verify and owns make no call to the service, close has a requirement of its own';
export const NO_BYTES = 'none are looked at';

type Run = KeyWrapperRequirement['run'];

export const must = (id: string, text: string, source: string, cells: Tried, run: Run): KeyWrapperRequirement =>
  mustOf<KeyWrapperRequirement>(id, text, source, { tried: cells, run });

export const should = (id: string, text: string, source: string, cells: Tried, run: Run): KeyWrapperRequirement =>
  shouldOf<KeyWrapperRequirement>(id, text, source, { tried: cells, run });

/** Where requirements come from. */
export const CONTRACT = 'KeyWrapper of @sealring/core';
export const RING = 'Sealring ring document: what it stores of a wrapped key';
export const KIT = 'Sealring conformance kit';

export function clause(...numbers: readonly number[]): string {
  return numbers.map((number) => `${CONTRACT}, clause ${number}`).join('; ');
}
