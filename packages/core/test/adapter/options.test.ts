import { describe, expect, test } from 'vitest';
import { checkFactoryOptions, startTimeoutMsOf } from '../../src/adapter/codec-options.ts';
import { corrupt, keyWrapperError, type ServiceFailure, tooLarge } from '../../src/adapter/failures.ts';
import {
  checkCallback,
  flag,
  integerWithin,
  listOf,
  objectWith,
  outOfRange,
  signalOf,
  text,
  textMatching,
  textWithin,
  timeoutMsOf,
  urlWith,
  wrongType,
} from '../../src/adapter/options.ts';

const OWNER = 'owner';
const DIGITS = /^\d+$/;

const entryOf = (name: string, entry: unknown): string => text(OWNER, name, entry);

describe('options of an adapter', () => {
  const right: readonly (readonly [string, unknown, unknown])[] = [
    ['a whole number', integerWithin(OWNER, 'x', 3, 3, 3), 3],
    ['seconds, as milliseconds', [timeoutMsOf(OWNER, 0.01), timeoutMsOf(OWNER, 60)], [10, 60_000]],
    ['a boolean', [flag(OWNER, 'x', true), flag(OWNER, 'x', false)], [true, false]],
    ['text', text(OWNER, 'x', ''), ''],
    ['text within bounds', [textWithin(OWNER, 'x', 'a', 3), textWithin(OWNER, 'x', 'abc', 3)], ['a', 'abc']],
    ['text of a form', textMatching(OWNER, 'x', '12', DIGITS), '12'],
    ['a URL', urlWith(OWNER, 'x', 'https://a:b@c', ['https:'], 'an https:// URL'), 'https://a:b@c'],
    ['an array', listOf(OWNER, 'x', ['a', 'b'], 'texts', 2, entryOf), ['a', 'b']],
    ['no signal', signalOf(OWNER, undefined), undefined],
  ];
  test.each(right)('the value of an option is passed on: %s', (_, read, expected) => {
    expect(read).toEqual(expected);
  });

  test('a signal, a callback and a client are accepted', () => {
    const { signal } = new AbortController();
    expect(signalOf(OWNER, signal)).toBe(signal);
    expect(() => checkCallback(OWNER, 'x', undefined)).not.toThrow();
    expect(() => checkCallback(OWNER, 'x', () => 1)).not.toThrow();
    class Client {
      send(): void {}
    }
    const client = new Client();
    expect(objectWith<Client>(OWNER, 'x', client, 'send', 'a client')).toBe(client);
  });

  const wrong: readonly (readonly [string, () => unknown, ErrorConstructor])[] = [
    ['a number that is not whole', () => integerWithin(OWNER, 'x', 1.5, 1, 3), RangeError],
    ['a number out of bounds', () => integerWithin(OWNER, 'x', 4, 1, 3), RangeError],
    ['a number as text', () => integerWithin(OWNER, 'x', '2', 1, 3), TypeError],
    ['a flag that is undefined', () => flag(OWNER, 'x', undefined), TypeError],
    ['a flag as text', () => flag(OWNER, 'x', 'canary'), TypeError],
    ['bytes for text', () => text(OWNER, 'x', Buffer.from('canary')), TypeError],
    ['empty text', () => textWithin(OWNER, 'x', '', 3), RangeError],
    ['long text', () => textWithin(OWNER, 'x', 'canary', 3), RangeError],
    ['half a character', () => textWithin(OWNER, 'x', '\ud800', 3), RangeError],
    ['text of another form', () => textMatching(OWNER, 'x', 'a', DIGITS), RangeError],
    [
      'a URL of another protocol',
      () => urlWith(OWNER, 'x', 'http://canary@c', ['https:'], 'an https:// URL'),
      RangeError,
    ],
    ['text that is not a URL', () => urlWith(OWNER, 'x', 'canary', ['https:'], 'an https:// URL'), RangeError],
    ['a string instead of an array', () => listOf(OWNER, 'x', 'canary', 'texts', 2, entryOf), TypeError],
    ['a long array', () => listOf(OWNER, 'x', ['a', 'b', 'c'], 'texts', 2, entryOf), RangeError],
    ['a wrong entry', () => listOf(OWNER, 'x', ['a', 7], 'texts', 2, entryOf), TypeError],
    ['null instead of a client', () => objectWith<{ send(): void }>(OWNER, 'x', null, 'send', 'a client'), TypeError],
    [
      'a client without the method',
      () => objectWith<{ send(): void }>(OWNER, 'x', { send: 1 }, 'send', 'a client'),
      TypeError,
    ],
    ['a callback of another type', () => checkCallback(OWNER, 'x', null), TypeError],
  ];
  test.each(wrong)('an option is refused with an error that names it and shows no secret: %s', (_, read, type) => {
    expect(read).toThrow(type);
    expect(read).toThrow(/^owner: x(?:\[1\])? must/);
    expect(read).not.toThrow('canary');
  });

  test.each([[0], [0.009], [60.001], [Number.NaN], [Infinity]])(
    'callTimeoutSeconds of %d causes a RangeError (F29)',
    (value) => {
      expect(() => timeoutMsOf(OWNER, value)).toThrow(RangeError);
      expect(() => timeoutMsOf(OWNER, value)).toThrow(
        `owner: callTimeoutSeconds must be from 0.01 to 60, got ${value}`,
      );
    },
  );

  test('callTimeoutSeconds as text, and a signal that is not an AbortSignal, cause TypeErrors', () => {
    expect(() => timeoutMsOf(OWNER, '5')).toThrow(TypeError);
    for (const signal of [null, {}, { aborted: true }]) expect(() => signalOf(OWNER, signal)).toThrow(TypeError);
  });

  test('a list is returned as a frozen copy', () => {
    const given = ['a'];
    const list = listOf(OWNER, 'x', given, 'texts', 2, entryOf);
    given.push('b');
    expect(list).toEqual(['a']);
    expect(Object.isFrozen(list)).toBe(true);
  });

  test('an error names the owner, the option and the expected value, and quotes at most 120 characters', () => {
    expect(wrongType(OWNER, 'x', 'a string', Buffer.from('canary'))).toEqual(
      new TypeError('owner: x must be a string, got 6 bytes'),
    );
    expect(outOfRange(OWNER, 'x', 'a name', 'y'.repeat(200))).toEqual(
      new RangeError(`owner: x must be a name, got "${'y'.repeat(120)}"`),
    );
  });
});

test('a factory refuses options that are not an object, and any option that it sets itself', () => {
  for (const options of [{ keyWrapper: 1 }, { closeKeyWrappers: true }, null, undefined, 'ring', []])
    expect(() => checkFactoryOptions('factory', options)).toThrow(TypeError);
  expect(() => checkFactoryOptions('factory', { ring: 1, policy: {} })).not.toThrow();
  expect([startTimeoutMsOf(undefined), startTimeoutMsOf({ startTimeoutSeconds: 7 })]).toEqual([120_000, 7_000]);
  expect(() => startTimeoutMsOf(5)).toThrow(TypeError);
});

test('a key wrapper’s error names the permission only if the service denied the call with a code that has no hint', () => {
  const hintOf = (failure: ServiceFailure, permission?: string) =>
    keyWrapperError('kms', 'wrap', { failure, permission, attempts: 2 }).summary.hint;
  const denied = { kind: 'denied', code: 'AccessDenied' } as const;
  expect(hintOf(denied, 'Encrypt')).toBe('the caller lacks Encrypt');
  expect(hintOf({ ...denied, hint: 'other' }, 'Encrypt')).toBe('other');
  for (const failure of [{ kind: 'denied' }, { ...denied, kind: 'throttled' }] as const)
    expect(hintOf(failure, 'Encrypt')).toBeUndefined();
  expect(hintOf(denied)).toBeUndefined();
  const facts = { provider: 'kms', operation: 'wrap', code: 'AccessDenied', attempts: 2 };
  expect(keyWrapperError('kms', 'wrap', { failure: denied, attempts: 2 }).summary).toMatchObject(facts);
  expect(corrupt('kms', 'unwrap', 'text')).toMatchObject({
    kind: 'corrupt',
    summary: { operation: 'unwrap', hint: 'text' },
  });
  expect(tooLarge('revision')).toMatchObject({ kind: 'too-large', revision: 'revision' });
});
