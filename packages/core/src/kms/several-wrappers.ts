import { KEY_WRAPPER_ERROR_KINDS, KeyWrapperError } from '../contracts/key-wrapper.ts';

/** The first good answer; the data keys of later ones are overwritten. @throws what all of them failed with. */
export async function firstOf<T extends { readonly dataKey: Uint8Array }>(asked: readonly Promise<T>[]): Promise<T> {
  try {
    const first = await Promise.any(asked);
    for (const answer of asked) {
      answer.then(
        (late) => {
          if (late !== first) late.dataKey.fill(0);
        },
        () => undefined,
      );
    }
    return first;
  } catch (error) {
    throw error instanceof AggregateError ? allOf(error.errors) : error;
  }
}

/**
 * What several key wrappers failed with, as one error. It is a refusal only when all refuse: a KMS that was merely out
 * of reach may still allow the key.
 */
export function allOf(failures: readonly unknown[]): unknown {
  const [first] = failures;
  const known = failures.filter((failure) => failure instanceof KeyWrapperError);
  if (failures.length === 1 || known.length < failures.length) return first;
  const kinds = known.map(({ kind }) => kind);
  // The mildest error decides the kind.
  const kind = KEY_WRAPPER_ERROR_KINDS.find((candidate) => kinds.includes(candidate)) ?? 'unavailable';
  return new KeyWrapperError(kind, {
    provider: known.map(({ summary }) => summary.provider).join(', '),
    operation: known[0]?.summary.operation ?? 'unwrap',
    causes: known,
  });
}
