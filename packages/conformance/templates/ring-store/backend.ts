/** A document stored under a name. */
export interface Stored {
  readonly document: string;
  readonly revision: string;
}

/**
 * Reads the document stored under a name. Resolves to `undefined` only if the service reports that nothing is stored;
 * throw for every other response, and for a missing one.
 */
export async function find(name: string, signal: AbortSignal | undefined): Promise<Stored | undefined> {
  throw new Error(`fill in find: ${name}, ${signal?.aborted}`);
}

/**
 * Stores a document in one atomic step of the service, if `expected` is still the current revision; with `undefined`,
 * if nothing is stored. Resolves to the new revision, or to `undefined` if another writer was first.
 */
export async function swap(
  name: string,
  document: string,
  expected: string | undefined,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  throw new Error(`fill in swap: ${name}, ${document.length}, ${expected}, ${signal?.aborted}`);
}
