import type { KeyWrapper, RingStore, StoredRing, WrappedKey } from '@sealring/core';
import * as v from 'valibot';
import type { Said } from './program.ts';

/** Thrown for an answer that violates the protocol. The message describes the violation. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

const aString = v.string('is not a string');
const aFlag = v.boolean('is not true or false');
const names = v.optional(v.array(aString, 'is not an array of strings'), []);
const base64 = v.pipe(
  aString,
  v.check(
    (text) => Buffer.from(text, 'base64').toString('base64') === text,
    'is not base64 with padding (RFC 4648, section 4)',
  ),
  v.transform((text) => Uint8Array.from(Buffer.from(text, 'base64'))),
);

function members<T extends v.ObjectEntries>(entries: T): v.ObjectSchema<T, string> {
  return v.object(entries, 'is missing or not an object');
}

const RECORD = members({
  provider: aString,
  keyId: aString,
  wrapped: base64,
  signature: v.exactOptional(base64),
});

/** The description that a program gives of its target. */
export interface Description {
  readonly name?: string;
  readonly supports?: Readonly<Record<string, unknown>>;
  /** The operations on the backend that the program offers. */
  readonly can: readonly string[];
}

/** The failure of a call, with its kind. */
export interface Failure {
  readonly kind: string;
  readonly message: string;
  readonly provider?: string;
  readonly operation?: string;
  readonly revision?: string;
}

type Has = { readonly has: readonly string[] };

/** The members of an answer. An answer has one of them, or none if the call has no result. */
export interface Results {
  readonly error: string;
  // Members of a codec's answer.
  readonly token: string;
  readonly payload: Uint8Array;
  readonly invalid: string;
  // Members of the answer of a key wrapper or a ring store.
  readonly target: Description;
  readonly failure: Failure;
  readonly keyWrapper: Pick<KeyWrapper, 'provider' | 'keyId' | 'supports'> & Has;
  readonly wrapped: WrappedKey;
  readonly dataKey: Uint8Array;
  readonly generated: { readonly dataKey: Uint8Array; readonly wrapped: WrappedKey };
  readonly signature: Uint8Array;
  readonly verified: boolean;
  readonly owned: boolean;
  readonly store: Pick<RingStore, 'kind' | 'location'> & Has;
  readonly stored: StoredRing;
  readonly absent: true;
  readonly revision: string;
}

const RESULTS: { readonly [Kind in keyof Results]: v.GenericSchema<unknown, Results[Kind]> } = {
  error: aString,
  token: aString,
  payload: base64,
  invalid: aString,
  target: members({
    name: v.exactOptional(aString),
    supports: v.exactOptional(v.record(v.string(), v.unknown(), 'is not an object')),
    can: names,
  }),
  failure: members({
    kind: aString,
    message: v.optional(aString, ''),
    provider: v.exactOptional(aString),
    operation: v.exactOptional(aString),
    revision: v.exactOptional(aString),
  }),
  keyWrapper: members({
    provider: aString,
    keyId: aString,
    supports: members({ context: aFlag, authenticated: aFlag, keyVersions: v.exactOptional(aFlag) }),
    has: names,
  }),
  wrapped: RECORD,
  dataKey: base64,
  generated: members({ dataKey: base64, wrapped: RECORD }),
  signature: base64,
  verified: aFlag,
  owned: aFlag,
  store: members({ kind: aString, location: v.exactOptional(aString), has: names }),
  stored: members({ document: aString, revision: aString }),
  absent: v.literal(true, 'is not true'),
  revision: aString,
};

export type ResultKind = keyof Results;

/** The answer to a request: a result, an error, or nothing. */
export type Answer<Kind extends ResultKind> =
  | { [Each in Kind | 'error']: { readonly kind: Each; readonly value: Results[Each] } }[Kind | 'error']
  | { readonly kind: 'nothing'; readonly value?: undefined };

const KINDS = Object.keys(RESULTS) as readonly ResultKind[];

/**
 * Reads an answer: an error, or exactly one result of these kinds. If the only kind is `failure`, the answer may also
 * have no result.
 *
 * @throws {WrongAnswer} for any other answer.
 */
export function readAnswer<Kind extends ResultKind>(
  said: Said,
  kinds: readonly Kind[],
  shown: () => string,
): Answer<Kind> {
  const given = KINDS.filter((kind) => said[kind] !== undefined);
  const [kind] = given;
  if (given.length > 1) throw new WrongAnswer(`has both ${given.join(' and ')}`);
  if (kind === undefined) {
    if (kinds.every((one) => one === 'failure')) return { kind: 'nothing' };
    throw new WrongAnswer(`has neither ${kinds.join(' nor ')} nor error: ${shown()}`);
  }
  if (kind !== 'error' && !(kinds as readonly ResultKind[]).includes(kind)) throw new WrongAnswer(`has ${kind}`);
  const read = v.safeParse(RESULTS[kind], said[kind]);
  if (read.success) return { kind, value: read.output } as Answer<Kind>;
  const [issue] = read.issues;
  const path = v.getDotPath(issue);
  throw new WrongAnswer(`has a ${kind}${path === null ? '' : `.${path}`} that ${issue.message}`);
}

const DATES = v.optional(v.array(v.number('is not a number'), 'is not an array of numbers'), []);

/** @throws {WrongAnswer} for dates that are not numbers. */
export function readDates({ dates }: Said): readonly number[] {
  const read = v.safeParse(DATES, dates);
  if (read.success) return read.output;
  throw new WrongAnswer('has dates that are not an array of numbers');
}
