import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { gcsRing } from '../src/index.ts';
import { checksum } from './gcs-stub.ts';

const bytes = Buffer.from('abcdef');
const unavailable = { name: 'RingStoreError', kind: 'unavailable', revision: undefined };

/** A ring whose client returns these answers in order. */
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

test('a read makes one request, or two if it finds nothing, and a write makes one', async () => {
  const sent: object[] = [];
  const answers = [notFound(), jsonOf({ kind: 'storage#objects' }), jsonOf({ generation: '9223372036854775807' })];
  const request = async (each: object) => sent.push(each) && answers.shift();
  const client = { apiEndpoint: 'https://x//', authClient: { request } };
  const ring = gcsRing({ bucket: 'payments-sealring', object: 'a/é', client });
  expect(await ring.read()).toBeUndefined();
  expect(await ring.write('x', { expected: undefined })).toEqual({ revision: '9223372036854775807' });
  const fixed = { responseType: 'stream', redirect: 'error', retry: false, validateStatus: expect.any(Function) };
  const each = { ...fixed, signal: expect.any(AbortSignal) };
  const plain = { 'accept-encoding': 'identity' };
  const object = 'a%2F%C3%A9';
  const list = `prefix=${object}&maxResults=1&fields=kind%2CnextPageToken%2Citems(name)`;
  const upload = `uploadType=multipart&name=${object}&ifGenerationMatch=0&fields=generation`;
  const media = { ...plain, 'cache-control': 'no-store' };
  const type = expect.stringMatching(/^multipart\/related; boundary=[\da-f-]{36}$/);
  const data = expect.any(Readable);
  expect(sent).toEqual([
    {
      ...each,
      method: 'GET',
      url: `https://x/download/storage/v1/b/payments-sealring/o/${object}?alt=media`,
      headers: media,
    },
    { ...each, method: 'GET', url: `https://x/storage/v1/b/payments-sealring/o?${list}`, headers: plain },
    {
      ...each,
      method: 'POST',
      url: `https://x/upload/storage/v1/b/payments-sealring/o?${upload}`,
      headers: { ...plain, 'content-type': type, 'content-length': '306' },
      data,
    },
  ]);
});

describe('answers that the emulator never gives', () => {
  test('a body in chunks is joined, even if a chunk ends within a character', async () => {
    const euro = Buffer.from('€');
    const body = Readable.from([euro.subarray(0, 1), euro.subarray(1)]);
    const headers = { 'x-goog-hash': `md5=AAAA, crc32c=${checksum(euro)}` };
    expect(await ringWith(objectOf(body, headers)).read()).toEqual({ document: '€', revision: '1' });
  });

  const short = 'the body ended early';
  const none = 'the answer has no body';
  const unnamed = 'the answer has no generation';
  const damaged = 'the document was damaged in transit';
  const ofBytes = (headers: Record<string, string>, status?: number) =>
    objectOf(Readable.from([bytes]), headers, status);
  test.each([
    ['shorter than declared', short, ofBytes({ 'content-length': '7' })],
    ['longer than declared', short, ofBytes({ 'content-length': '5' })],
    ['text instead of bytes', none, objectOf(Readable.from(['abcdef']))],
    ['a string instead of a stream', none, objectOf('abcdef')],
    ['missing', none, objectOf(undefined)],
    ['without a generation', unnamed, ofBytes({ 'x-goog-generation': '' })],
    ['of generation 0', unnamed, ofBytes({ 'x-goog-generation': '0' })],
    ['of a generation that is not a number', unnamed, ofBytes({ 'x-goog-generation': '1e3' })],
    ['of a generation over 63 bits', unnamed, ofBytes({ 'x-goog-generation': '9223372036854775808' })],
    ['without a checksum', damaged, ofBytes({ 'x-goog-hash': 'md5=AAAA' })],
    ['of another checksum', damaged, objectOf(Readable.from([Buffer.from('abcdeF')]))],
    ['only a part', 'the call failed', ofBytes({}, 206)],
  ])('a body that is %s is reported as unavailable', async (_, detail, answer) => {
    await expect(ringWith(answer).read()).rejects.toMatchObject({ ...unavailable, detail });
  });

  test('an object that is stored compressed, or is empty, is corrupt', async () => {
    const answer = objectOf(Readable.from([bytes]), { 'x-goog-stored-content-encoding': 'gzip' });
    await expect(ringWith(answer).read()).rejects.toMatchObject({ kind: 'corrupt', revision: '1' });
    const empty = objectOf(Readable.from([]), { 'x-goog-hash': 'crc32c=AAAAAA==' });
    const refusal = { kind: 'corrupt', revision: '1', detail: 'the object is empty' };
    await expect(ringWith(empty).read()).rejects.toMatchObject(refusal);
  });

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['text', 'answer'],
    ['an empty object', {}],
    ['an answer without headers', { status: 200, data: Readable.from([bytes]) }],
    ['a status as text', { ...objectOf(Readable.from([bytes])), status: '200' }],
  ])('%s, from a client that is not a Cloud Storage client, is reported as unavailable', async (_, answer) => {
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
  ])('an answer of %j to a write is reported as unavailable, because the write may have succeeded', async (answer) => {
    const detail = 'the answer to the write did not come from Cloud Storage';
    const written = ringWith(jsonOf(answer)).write('x', { expected: undefined });
    await expect(written).rejects.toMatchObject({ ...unavailable, detail });
  });

  test.each([
    ['that is empty', { kind: 'storage#objects', items: [] }],
    ['without a list of objects', { kind: 'storage#objects' }],
    ['of another object', { kind: 'storage#objects', items: [{ name: 'k2' }] }],
  ])('after a listing %s, a 404 means that the ring is absent (F9)', async (_, listing) => {
    expect(await ringWith(notFound(), jsonOf(listing)).read()).toBeUndefined();
  });

  test.each([
    ['with more to come', { kind: 'storage#objects', nextPageToken: 't' }],
    ['of another kind', { kind: 'storage#buckets' }],
    ['of nothing', {}],
    ['of text', 'x'],
    ['of objects without names', { kind: 'storage#objects', items: [{}] }],
    ['of a value that is not a list', { kind: 'storage#objects', items: { length: 0 } }],
  ])('after a listing %s, a 404 never means that the ring is absent (F9)', async (_, listing) => {
    const refusal = { ...unavailable, detail: 'the listing of the bucket is incomplete' };
    await expect(ringWith(notFound(), jsonOf(listing)).read()).rejects.toMatchObject(refusal);
  });

  test('an object that is created between the 404 and the listing is read (F8)', async () => {
    const listing = { kind: 'storage#objects', items: [{ name: 'k' }] };
    const ring = ringWith(notFound(), jsonOf(listing), objectOf(Readable.from([bytes])));
    expect(await ring.read()).toEqual({ document: 'abcdef', revision: '1' });
    await expect(ringWith(notFound(), jsonOf(listing), notFound()).read()).rejects.toMatchObject(unavailable);
  });

  test('the date of a call’s first answer is reported, even of a 404, but an invalid date is not (F13)', async () => {
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
