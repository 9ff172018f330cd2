import { createHash } from 'node:crypto';

/** A parser of untrusted bytes. */
export interface Parser {
  /** Its name on the command line and in the corpus: `native-token`. */
  readonly name: string;
  /** Inputs that it accepts, or almost accepts: the others are made from them. */
  readonly seeds: readonly Uint8Array[];
  /** Words of its language, which are inserted at random places. */
  readonly words: readonly string[];
  /** The errors that it may throw. */
  readonly refuses: (error: Error) => boolean;
  /** Throws, or rejects, for an input that it refuses; for one that shows a defect it throws a {@link Fault}. */
  readonly parse: (input: Uint8Array) => unknown;
}

/** An invariant that the parser broke without throwing. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** A secret for the fuzzer alone: the same in every run, so that a corpus stays valid. */
export function fuzzKey(label: string): Buffer {
  return createHash('sha256').update(`sealring fuzz ${label}`).digest();
}

/** Imports a module of a package that the package does not export. */
export async function internal<Module>(path: string): Promise<Module> {
  return import(new URL(`../../packages/${path}`, import.meta.url).href);
}

export const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');
export const text = (input: Uint8Array): string =>
  Buffer.from(input.buffer, input.byteOffset, input.length).toString('utf8');
export const named =
  (...names: readonly string[]) =>
  (error: Error): boolean =>
    names.includes(error.name);
