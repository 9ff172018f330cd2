import { inspect, types } from 'node:util';
import type { RingStoreErrorKind, StoredRing } from '@sealring/core';
import { expectThat } from '../requirement.ts';
import { isObject, kindOf } from '../thrown.ts';
import type { Outcome } from '../trial.ts';

export function storedRing(value: unknown, what: string): StoredRing | undefined {
  if (value === undefined) return undefined;
  expectThat(isObject(value), `${what} resolved to ${kindOf(value)}, neither undefined nor { document, revision }`);
  const { document, revision } = value;
  expectThat(typeof document === 'string', `${what} resolved to a document that is ${kindOf(document)}, not a string`);
  expectThat(typeof revision === 'string', `${what} resolved to a revision that is ${kindOf(revision)}, not a string`);
  return { document, revision };
}

export function revisionOf(value: unknown, what: string): string {
  expectThat(isObject(value), `${what} resolved to ${kindOf(value)}, not { revision }`);
  const { revision } = value;
  expectThat(typeof revision === 'string', `${what} resolved to a revision that is ${kindOf(revision)}, not a string`);
  return revision;
}

/** Whether an error has the name RingConflictError. A store may have its own copy of the class. */
export function isConflict(error: unknown): boolean {
  return types.isNativeError(error) && error.name === 'RingConflictError';
}

export function isFailure(error: unknown, kind?: RingStoreErrorKind): boolean {
  if (!types.isNativeError(error) || error.name !== 'RingStoreError' || !('kind' in error)) return false;
  return kind === undefined || error.kind === kind;
}

export function documentText(document: string): string {
  if (document.length <= 60) return textOf(document);
  return `${textOf(document.slice(0, 40))}… (${document.length} characters)`;
}

export function textOf(text: string): string {
  return inspect(text.length > 80 ? `${text.slice(0, 60)}…` : text);
}

/** Expects that a read, even an interrupted one, has resolved to one of these rings. */
export function expectOneOf(value: unknown, rings: readonly (Partial<StoredRing> | undefined)[], what: string): void {
  const found = storedRing(value, what);
  const isRight = rings.some(
    (ring) => ring?.document === found?.document && (ring?.revision ?? found?.revision) === found?.revision,
  );
  const shown = found === undefined ? 'undefined' : documentText(found.document);
  expectThat(isRight, `${what} resolved to ${shown}, which is not the stored document`);
}

/** Expects that an interrupted write was applied whole or not at all, and was applied if it resolved. */
export function expectDoneOrNot(
  found: StoredRing | undefined,
  before: StoredRing | undefined,
  document: string,
  outcome: Outcome,
  what: string,
): void {
  const shown = found === undefined ? 'no ring' : documentText(found.document);
  const isNew = found?.document === document;
  expectThat(isNew || found?.document === before?.document, `${what} left ${shown}`);
  const whose = isNew ? 'the earlier document' : 'another document';
  expectThat(isNew !== (found?.revision === before?.revision), `${what} left ${shown} with the revision of ${whose}`);
  if ('error' in outcome) return;
  const isThere = isNew && found?.revision === revisionOf(outcome.value, what);
  expectThat(isThere, `${what} resolved, but a read returns ${shown}`);
}
