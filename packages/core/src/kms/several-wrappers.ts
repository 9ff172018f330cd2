import {
  KEY_WRAPPER_ERROR_KINDS,
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
} from '../contracts/key-wrapper.ts';
import type { RingWrap } from '../ring/document.ts';
import { isOwn, type WrapperCalls } from './wrapper-calls.ts';

/**
 * The first successful answer; the data keys of later answers are overwritten.
 * @throws one error for all failures if every call fails.
 */
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
    throw allOf((error as AggregateError).errors);
  }
}

/**
 * The failures of several key wrappers, as one error. This is a refusal only if all key wrappers refuse: an unreachable
 * KMS may still allow the key.
 */
export function allOf(failures: readonly unknown[]): unknown {
  const [first] = failures;
  const known = failures.filter((failure) => failure instanceof KeyWrapperError);
  if (failures.length === 1 || known.length < failures.length) return first;
  const kinds = known.map(({ kind }) => kind);
  // The mildest error decides the kind.
  const kind = KEY_WRAPPER_ERROR_KINDS.find((candidate) => kinds.includes(candidate)) as KeyWrapperErrorKind;
  return new KeyWrapperError(kind, {
    provider: known.map(({ summary }) => summary.provider).join(', '),
    operation: (known[0] as KeyWrapperError).summary.operation,
    causes: known,
  });
}

export function failuresIn(results: readonly PromiseSettledResult<unknown>[]): readonly unknown[] {
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
}

/** The last failures of the key wrappers, as one error; `otherwise` if none is known. */
export function lastFailureOf(wrappers: readonly WrapperCalls[], otherwise: unknown): unknown {
  const failures = wrappers.flatMap(({ lastAnswer }) => lastAnswer.failure ?? []);
  return failures.length === 0 ? otherwise : allOf(failures);
}

/** Whether an entry lacks a wrap of one of the wrappers. */
export function lacksWraps(entry: { readonly wraps: readonly RingWrap[] }, wrappers: readonly KeyWrapper[]): boolean {
  return wrappers.some((wrapper) => !entry.wraps.some((wrap) => isOwn(wrapper, wrap)));
}

export function noWrapOfOurs(wrappers: readonly WrapperCalls[]): {
  provider: string;
  operation: 'unwrap';
  hint: string;
} {
  const provider = wrappers.map(({ wrapper }) => wrapper.provider).join(' or ');
  return { provider, operation: 'unwrap', hint: 'the ring holds no wrap by this key wrapper' };
}
