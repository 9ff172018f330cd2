import { ownMember } from '../shared/own-member.ts';
import { outsideOfStrings } from './exact-json.ts';

/** Whether an object in this JSON text has two members with the same name. `value` is the parsed text. */
export function hasDuplicates(json: string, value: unknown): boolean {
  let written = 0;
  outsideOfStrings(json, (part) => {
    written += part.split(':').length - 1;
    return '';
  });
  let read = 0;
  for (const each of objectsIn(value)) if (!Array.isArray(each)) read += Object.keys(each).length;
  return written !== read;
}

/**
 * References that no parser resolves by their text: fragments and URLs, as in JSON Schema. fastjson 1.2 takes almost any
 * other text for a path, and also `#` and a scheme with nothing after them.
 */
const UNRESOLVED = /^(?:#|[a-z][a-z\d+.-]*:)[^]/i;

/**
 * Whether a value contains a reference that some parsers replace with another part of the body: fastjson and fastjson2
 * resolve `{"$ref":"$.params"}`, and Json.NET resolves `{"$ref":"1"}` to the object with `"$id":"1"`.
 */
export function hasReference(value: unknown): boolean {
  const references = new Set<unknown>();
  const ids = new Set<unknown>();
  for (const each of objectsIn(value)) {
    const reference = ownMember(each, '$ref');
    if (typeof reference === 'string') {
      if (!UNRESOLVED.test(reference)) return true;
      references.add(reference);
    }
    ids.add(ownMember(each, '$id'));
  }
  return [...references].some((reference) => ids.has(reference));
}

/** All objects and arrays in a value, and the value itself. It can be nested too deeply for recursion. */
function* objectsIn(value: unknown): Generator<object> {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each !== 'object' || each === null) continue;
    yield each;
    for (const member of Object.values(each)) if (typeof member === 'object') pending.push(member);
  }
}
