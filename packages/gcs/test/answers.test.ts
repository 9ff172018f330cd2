import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { gcsRing } from '../src/index.ts';
import { checksum } from './gcs-stub.ts';

const bytes = Buffer.from('abcdef');
const unavailable = { name: 'RingStoreError', kind: 'unavailable', revision: undefined };

/** A ring whose client returns these answers, one after the other. */
function ringWith(...answers: unknown[]) {
  const client = { apiEndpoint: 'https://x', authClient: { request: async () => answers.shift() } };
  return gcsRing({ bucket: 'payments-sealring', object: 'k', client });
}

function objectOf(body: unknown, headers: Record<string, string> = {}, status = 200) {
  const sound = { 'x-goog-generation': '1', 'x-goog-hash': `crc32c=${checksum(bytes)}`, ...headers };
  return { status, headers: new Headers(sound), data: body };
}

function jsonOf(value: unknown, status = 200) {
  return { status, headers: new Headers(), data: Readable.from([Buffer.from(JSON.stringify(value))]) };
}

const notFound = () => jsonOf({ error: { errors: [{ reason: 'notFound' }] } }, 404);

describe('answers that the emulator never gives', () => {
  test('a body in chunks is joined, even if a chunk ends within a character', async () => {
    const euro = Buffer.from('€');
    const body = Readable.from([euro.subarray(0, 1), euro.subarray(1)]);
    const headers = { 'x-goog-hash': `md5=AAAA, crc32c=${checksum(euro)}` };
    expect(await ringWith(objectOf(body, headers)).read()).toEqual({ document: '€', revision: '1' });
  });

  test.each([
    ['shorter than declared', objectOf(Readable.from([bytes]), { 'content-length': '7' })],
    ['longer than declared', objectOf(Readable.from([bytes]), { 'content-length': '5' })],
    ['not of bytes', objectOf(Readable.from(['abcdef']))],
    ['of a type with no stream', objectOf('abcdef')],
    ['missing', objectOf(undefined)],
    ['without a generation', objectOf(Readable.from([bytes]), { 'x-goog-generation': '' })],
    ['of generation 0', objectOf(Readable.from([bytes]), { 'x-goog-generation': '0' })],
    ['of a generation that is not a number', objectOf(Readable.from([bytes]), { 'x-goog-generation': '1e3' })],
    ['without a checksum', objectOf(Readable.from([bytes]), { 'x-goog-hash': 'md5=AAAA' })],
    ['of another checksum', objectOf(Readable.from([Buffer.from('abcdeF')]))],
    ['only a part', objectOf(Readable.from([bytes]), {}, 206)],
  ])('a body that is %s is unavailable', async (_, answer) => {
    await expect(ringWith(answer).read()).rejects.toMatchObject(unavailable);
  });

  test('an object that is stored compressed is corrupt', async () => {
    const answer = objectOf(Readable.from([bytes]), { 'x-goog-stored-content-encoding': 'gzip' });
    await expect(ringWith(answer).read()).rejects.toMatchObject({ kind: 'corrupt', revision: '1' });
  });

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['text', 'answer'],
    ['an empty object', {}],
    ['an answer without headers', { status: 200, data: Readable.from([bytes]) }],
    ['a status as text', { ...objectOf(Readable.from([bytes])), status: '200' }],
  ])('%s, from a client that is not one of Cloud Storage, is unavailable', async (_, answer) => {
    await expect(ringWith(answer).read()).rejects.toMatchObject(unavailable);
    await expect(ringWith(answer).write('x', { expected: undefined })).rejects.toMatchObject(unavailable);
  });

  test.each([
    [{}],
    [{ generation: 7 }],
    [{ generation: '0' }],
    [{ generation: '' }],
    [{ generation: '-1' }],
    ['text'],
    [null],
  ])('an answer of %j to a write is unavailable, because the write may have succeeded', async (answer) => {
    await expect(ringWith(jsonOf(answer)).write('x', { expected: undefined })).rejects.toMatchObject(unavailable);
  });

  test.each([
    ['that is empty', { kind: 'storage#objects', items: [] }],
    ['without a list of objects', { kind: 'storage#objects' }],
    ['of another object', { kind: 'storage#objects', items: [{ name: 'k2' }] }],
  ])('a 404 is absent after a listing %s (F9)', async (_, listing) => {
    expect(await ringWith(notFound(), jsonOf(listing)).read()).toBeUndefined();
  });

  test.each([
    ['with more to come', { kind: 'storage#objects', nextPageToken: 't' }],
    ['of another kind', { kind: 'storage#buckets' }],
    ['of nothing', {}],
    ['of text', 'x'],
    ['of objects without names', { kind: 'storage#objects', items: [{}] }],
    ['of a value that is not a list', { kind: 'storage#objects', items: { length: 0 } }],
  ])('a 404 is never absent after a listing %s (F9)', async (_, listing) => {
    await expect(ringWith(notFound(), jsonOf(listing)).read()).rejects.toMatchObject(unavailable);
  });

  test('an object that is created between the 404 and the listing is read (F8)', async () => {
    const listing = { kind: 'storage#objects', items: [{ name: 'k' }] };
    const ring = ringWith(notFound(), jsonOf(listing), objectOf(Readable.from([bytes])));
    expect(await ring.read()).toEqual({ document: 'abcdef', revision: '1' });
    await expect(ringWith(notFound(), jsonOf(listing), notFound()).read()).rejects.toMatchObject(unavailable);
  });

  test('the date of a call’s first answer is reported, of a 404 too; an invalid date is not (F13)', async () => {
    const dates: Date[] = [];
    const onServiceDate = (date: Date): void => void dates.push(date);
    const dated = (answer: { headers: Headers }, date: string) => {
      answer.headers.set('date', date);
      return answer;
    };
    const first = 'Sat, 21 Nov 2026 10:00:00 GMT';
    const second = 'Sat, 21 Nov 2026 10:00:01 GMT';
    const empty = { kind: 'storage#objects' };
    await ringWith(dated(notFound(), first), dated(jsonOf(empty), second)).read({ onServiceDate });
    expect(dates).toEqual([new Date(first)]);
    const generation = { generation: '2' };
    await ringWith(dated(jsonOf(generation), first)).write('x', { expected: undefined, onServiceDate });
    await ringWith(dated(jsonOf(generation), 'yesterday')).write('x', { expected: undefined, onServiceDate });
    await ringWith(jsonOf(generation)).write('x', { expected: undefined, onServiceDate });
    expect(dates).toHaveLength(2);
  });
});
