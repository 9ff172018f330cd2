import { createHmac, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeldKey } from '../src/key-cache.ts';
import {
  type Authenticity,
  authenticate,
  contradicts,
  isSignedBy,
  judge,
  type OwnKey,
} from '../src/ring/authentication.ts';
import {
  encodeBody,
  encodeDocument,
  MAX_EPOCH,
  parseDocument,
  type RingContent,
  type RingDocument,
  type RingEntry,
  sameWrap,
  signedBytes,
  wrapContext,
} from '../src/ring/document.ts';
import { ARMED, afterRefusal, isRefusal } from '../src/ring/kill-switch.ts';
import { lacks, union } from '../src/ring/merge.ts';
import { resolvePolicy } from '../src/ring/policy.ts';
import {
  compareAge,
  type KeyTimes,
  mayOpen,
  maySeal,
  newest,
  removableFrom,
  rotateAt,
  rotationDelayMs,
  type ScheduledKey,
  stateOf,
  timesOfNewKey,
} from '../src/ring/schedule.ts';
import { RingStoreError, type RingStoreErrorKind } from '../src/ring/store.ts';

const RING = 'payments';
const RING_FORMAT = 'sealring/ring/1';
const T0 = Date.parse('2026-11-21T03:00:00Z');
const HOUR = 3_600_000;

function entryOf(id: string, more: Partial<RingEntry> = {}): RingEntry {
  return {
    id,
    created: T0,
    activates: T0 + HOUR,
    sealsUntil: T0 + 2 * HOUR,
    opensUntil: T0 + 3 * HOUR,
    revoked: undefined,
    wraps: [{ provider: 'local', keyId: 'k', wrapped: Buffer.alloc(60, 7), unknown: {} }],
    unknown: {},
    ...more,
  };
}

const idOf = (n: number): string => Buffer.from(String(n).padStart(9, '0')).toString('base64url');

function contentOf(entries: readonly RingEntry[], more: Partial<RingContent> = {}): RingContent {
  return { ring: RING, epoch: 3, entries, unknown: {}, ...more };
}

function textOf(content: RingContent, keys: readonly HeldKey[] = []): string {
  const body = encodeBody(content);
  return encodeDocument(body, authenticate(body, keys));
}

const refused = (kind: RingStoreErrorKind) => expect.objectContaining({ name: 'RingStoreError', kind });

/** Parses a document of one key after an edit of its JSON. */
function parseEdited(edit: (document: Record<string, unknown>, key: Record<string, unknown>) => void): RingDocument {
  const [body = '', macs = ''] = textOf(contentOf([entryOf(idOf(1))])).split('\n');
  const document = JSON.parse(body) as Record<string, unknown>;
  edit(document, (document['keys'] as Record<string, unknown>[])[0] ?? {});
  return parseDocument(`${JSON.stringify(document)}\n${macs}`, RING);
}

function parsedOrError(text: string): RingDocument | Error {
  try {
    return parseDocument(text, RING);
  } catch (error) {
    return error instanceof Error ? error : new Error('something else was thrown');
  }
}

/*
 * Any document that this version, or a newer one, could have written.
 */

/** JSON as a newer version might add it. `-0` has no JSON text of its own. */
const json = fc
  .jsonValue({ maxDepth: 3, noUnicodeString: false })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Members that this version does not know; now and then one that every object inherits. */
function unknownMembers(known: readonly string[]): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const name = fc.oneof(
    // No backslash: once V8 13.6 (Node 24.21) has parsed {"\\":1}, it reads any escaped name in that place as a backslash,
    // {"\u00e9":1} too. Names of this format have no escapes.
    fc.string({ maxLength: 8 }).filter((text) => !text.includes('\\')),
    fc.constantFrom('__proto__', 'constructor', 'toString', '0', '7', 'é'),
  );
  return fc
    .array(fc.tuple(name, json), { maxLength: 4 })
    .map((pairs) => Object.fromEntries(pairs.filter(([key]) => !known.includes(key))));
}

const second = fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000);
const times = fc
  .tuple(second, second, fc.integer({ min: 1, max: 1e8 }), fc.integer({ min: 1, max: 1e8 }))
  .map(([created, activates, seals, opens]): KeyTimes => {
    const sealsUntil = activates + seals * 1_000;
    return { created, activates, sealsUntil, opensUntil: sealsUntil + opens * 1_000 };
  });
const bytes = fc.uint8Array({ minLength: 1, maxLength: 90 }).map((array) => Buffer.from(array));
const wrap = fc
  .record({
    provider: fc.stringMatching(/^[a-z0-9-]{1,64}$/),
    keyId: fc.string({ minLength: 1, maxLength: 80, unit: 'binary' }),
    wrapped: bytes,
    signature: fc.option(bytes, { nil: undefined }),
    unknown: unknownMembers(['provider', 'keyId', 'wrapped', 'signature']),
  })
  .map(({ signature, ...rest }) => ({ ...rest, ...(signature === undefined ? {} : { signature }) }));
const entry: fc.Arbitrary<RingEntry> = fc
  .record({
    id: fc.uint8Array({ minLength: 9, maxLength: 9 }).map((array) => Buffer.from(array).toString('base64url')),
    times,
    revoked: fc.option(second, { nil: undefined }),
    wraps: fc.array(wrap, { minLength: 1, maxLength: 3 }),
    unknown: unknownMembers(['id', 'created', 'activates', 'sealsUntil', 'opensUntil', 'revoked', 'wraps']),
  })
  .map(({ times: own, ...rest }) => ({ ...own, ...rest }));
const content: fc.Arbitrary<RingContent> = fc.record({
  ring: fc.constant(RING),
  epoch: fc.integer({ min: 0, max: MAX_EPOCH }),
  entries: fc.uniqueArray(entry, { maxLength: 5, selector: (each) => each.id }),
  unknown: unknownMembers(['format', 'ring', 'epoch', 'critical', 'keys']),
});
const macs = fc
  .array(fc.tuple(fc.string({ maxLength: 12 }), fc.uint8Array({ minLength: 32, maxLength: 32 })), { maxLength: 4 })
  .map((pairs) => new Map(pairs.map(([id, mac]) => [id, Buffer.from(mac)])));

describe('a ring document', () => {
  test('F27 keeps everything through encode and parse: every unknown member at every level, __proto__ too', () => {
    fc.assert(
      fc.property(content, macs, (given, signed) => {
        const text = encodeDocument(encodeBody(given), signed);
        expect(text).toMatch(/^[\x20-\x7e]+\n[\x20-\x7e]+$/);
        const { body, macs: parsedMacs, ...parsed } = parseDocument(text, RING);
        expect(parsed).toEqual(given);
        for (const [i, each] of parsed.entries.entries()) {
          expect(Object.keys(each.unknown).toSorted()).toEqual(Object.keys(given.entries[i]?.unknown ?? {}).toSorted());
        }
        expect(body).toBe(text.slice(0, text.indexOf('\n')));
        expect(parsedMacs).toEqual(signed);
        expect(encodeBody(parsed)).toBe(encodeBody(given));
      }),
      { numRuns: 500 },
    );
  });

  test('F27 an own __proto__ is kept and changes no prototype', () => {
    const unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as Readonly<Record<string, unknown>>;
    const own = entryOf(idOf(1), {
      unknown,
      wraps: [{ ...entryOf('').wraps[0], unknown } as RingEntry['wraps'][number]],
    });
    const once = parseDocument(textOf(contentOf([own], { unknown })), RING);
    const twice = parseDocument(textOf(once), RING);
    expect(twice.body).toBe(once.body);
    expect(twice.body.match(/"__proto__":\{"polluted":true\}/g)).toHaveLength(3);
    for (const each of [twice.unknown, twice.entries[0]?.unknown, twice.entries[0]?.wraps[0]?.unknown]) {
      expect(Object.getPrototypeOf(each)).toBe(Object.prototype);
      expect(Object.hasOwn(each ?? {}, '__proto__')).toBe(true);
    }
    expect('polluted' in {}).toBe(false);
  });

  test('F27 a union of two versions’ documents keeps the unknown members of both', () => {
    const mine = contentOf([entryOf(idOf(1), { unknown: { a: 1 } })], { unknown: { x: 1 } });
    const theirs = contentOf([entryOf(idOf(1), { unknown: { b: 2 } }), entryOf(idOf(2))], {
      unknown: { y: 2 },
      epoch: 9,
    });
    const both = parseDocument(textOf(union(mine, theirs)), RING);
    expect(both).toMatchObject({ epoch: 9, unknown: { x: 1, y: 2 } });
    expect(both.entries.map((each) => each.unknown)).toEqual([{ a: 1, b: 2 }, {}]);
  });

  test('of any text is parsed or refused with a RingStoreError, never anything else', () => {
    const valid = textOf(contentOf([entryOf(idOf(1)), entryOf(idOf(2))]));
    const shaped = fc.tuple(fc.json({ maxDepth: 3 }), fc.json({ maxDepth: 2 })).map(([a, b]) => `${a}\n${b}`);
    const members = fc.dictionary(
      fc.constantFrom('format', 'ring', 'epoch', 'critical', 'keys', 'macs', '__proto__'),
      fc.oneof(json, fc.constantFrom(RING_FORMAT, RING, 1, [], [{}], [[]], [null], [{ id: idOf(1), wraps: [null] }])),
    );
    const almost = fc.tuple(members, members).map((pair) => pair.map((each) => JSON.stringify(each)).join('\n'));
    const cut = fc.nat(valid.length).map((at) => valid.slice(0, at));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), shaped, almost, cut), (text) => {
        const result = parsedOrError(text);
        expect(!(result instanceof Error) || result instanceof RingStoreError).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });

  test('that was changed anywhere is refused, or says what it always said, or fails its MAC', () => {
    const held = new HeldKey(randomBytes(32), RING);
    const original = textOf(contentOf([entryOf(held.id), entryOf(idOf(2), { revoked: T0 })]), [held]);
    const before = parseDocument(original, RING);
    const edit = fc.tuple(
      fc.nat(original.length - 1),
      fc.nat(4),
      fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('"', ',', '0', '9', 'A', '{}', '[]', 'null', '')),
    );
    let parsed = 0;
    fc.assert(
      fc.property(edit, ([at, removed, inserted]) => {
        const text = original.slice(0, at) + inserted + original.slice(at + removed);
        const document = parsedOrError(text);
        if (document instanceof RingStoreError) return;
        if (document instanceof Error) throw document;
        parsed += 1;
        const same = isDeepStrictEqual({ ...document, macs: 0 }, { ...before, macs: 0 });
        expect(document.body === before.body ? same : !isSignedBy(document, held)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
    expect(parsed).toBeGreaterThan(100);
  });
});

describe('a document is refused', () => {
  test('F25, F27 of an unknown format, with anything in critical, or under another ring’s name', () => {
    expect(() =>
      parseEdited((document) => {
        document['format'] = 'sealring/ring/2';
      }),
    ).toThrow(refused('corrupt'));
    expect(() =>
      parseEdited((document) => {
        document['format'] = undefined;
      }),
    ).toThrow(refused('corrupt'));
    for (const critical of [['x'], [''], [null], {}, null, 'x', undefined]) {
      expect(() =>
        parseEdited((document) => {
          document['critical'] = critical;
        }),
      ).toThrow(refused('corrupt'));
    }
    for (const ring of ['orders', '', 'Payments', null, 5, undefined, [RING]]) {
      expect(() =>
        parseEdited((document) => {
          document['ring'] = ring;
        }),
      ).toThrow(refused('corrupt'));
    }
    expect(parseEdited(() => undefined).ring).toBe(RING);
  });

  test('with an epoch that is no whole number from 0 to 2^53 − 2^20', () => {
    for (const epoch of [-1, 0.5, MAX_EPOCH + 1, 2 ** 53, 1e300, '1', null, undefined, true, [1]]) {
      expect(() =>
        parseEdited((document) => {
          document['epoch'] = epoch;
        }),
      ).toThrow(refused('corrupt'));
    }
    for (const epoch of [0, MAX_EPOCH]) {
      expect(
        parseEdited((document) => {
          document['epoch'] = epoch;
        }).epoch,
      ).toBe(epoch);
    }
    expect(MAX_EPOCH).toBe(2 ** 53 - 2 ** 20);
  });

  const badTimes: readonly unknown[] = [
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-11-31T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T23:60:00Z',
    '2026-11-21T23:59:60Z',
    '2026-11-21T03:00:00.000Z',
    '2026-11-21T03:00:00+00:00',
    '2026-11-21T03:00:00z',
    '2026-11-21t03:00:00Z',
    '2026-11-21 03:00:00Z',
    '2026-11-21',
    '+002026-11-21T03:00:00Z',
    '2026-11-21T03:00:00Z ',
    '2026-11-21T03:00:00Z\n',
    '',
    T0,
    null,
    [],
  ];

  test.each(['created', 'activates', 'sealsUntil', 'opensUntil', 'revoked'])(
    'with a %s that is no time of one spelling',
    (name) => {
      for (const time of badTimes) {
        expect(() =>
          parseEdited((_, key) => {
            key[name] = time;
          }),
        ).toThrow(refused('corrupt'));
      }
    },
  );

  test.each(['created', 'activates', 'sealsUntil', 'opensUntil'])('without %s', (name) => {
    expect(() =>
      parseEdited((_, key) => {
        delete key[name];
      }),
    ).toThrow(refused('corrupt'));
  });

  test('with times out of order', () => {
    const order = (activates: number, sealsUntil: number, opensUntil: number) => () =>
      parseDocument(
        textOf(
          contentOf([
            entryOf(idOf(1), {
              activates: activates * 1_000,
              sealsUntil: sealsUntil * 1_000,
              opensUntil: opensUntil * 1_000,
            }),
          ]),
        ),
        RING,
      );
    for (const [a, s, o] of [
      [2, 1, 3],
      [1, 3, 2],
      [1, 1, 2],
      [1, 2, 2],
      [3, 2, 1],
      [1, 1, 1],
    ] as const) {
      expect(order(a, s, o)).toThrow(refused('corrupt'));
    }
    expect(order(1, 2, 3)).not.toThrow();
  });

  test('F16 with one id twice, and with an id that is not 12 characters of one spelling', () => {
    const twice = textOf(contentOf([entryOf(idOf(1)), entryOf(idOf(1), { activates: T0 })]));
    expect(() => parseDocument(twice, RING)).toThrow(refused('corrupt'));
    for (const id of [
      '',
      'AAAA',
      'A'.repeat(11),
      'A'.repeat(13),
      'A'.repeat(16),
      'AAAAAAAAAAA=',
      'AAAA+AAAAAAA',
      'AAAA/AAAAAAA',
      5,
      null,
    ]) {
      expect(() =>
        parseEdited((_, key) => {
          key['id'] = id;
        }),
      ).toThrow(refused('corrupt'));
    }
  });

  test('F23 with more than 64 keys or more than 256 KiB', () => {
    const many = (count: number) => contentOf(Array.from({ length: count }, (_, i) => entryOf(idOf(i))));
    expect(parseDocument(textOf(many(64)), RING).entries).toHaveLength(64);
    expect(() => parseDocument(textOf(many(65)), RING)).toThrow(refused('too-large'));
    const padded = (bytesWanted: number) => {
      const unpadded = textOf(contentOf([], { unknown: { pad: '' } })).length;
      return contentOf([], { unknown: { pad: 'x'.repeat(bytesWanted - unpadded) } });
    };
    const exact = textOf(padded(262_144));
    expect(exact).toHaveLength(262_144);
    expect(() => parseDocument(exact, RING)).not.toThrow();
    expect(() => parseDocument(`${exact} `, RING)).toThrow(refused('too-large'));
    expect(() => textOf(padded(262_145))).toThrow(refused('too-large'));
  });

  test('F27 with what could be read and never be written again: an infinite number, nesting deeper than 512', () => {
    const body = encodeBody(contentOf([entryOf(idOf(1))]));
    const withMember = (value: string) => () =>
      parseDocument(`${body.slice(0, -1)},"more":${value}}\n{"macs":{}}`, RING).unknown;
    expect(withMember('1e300')()).toEqual({ more: 1e300 });
    expect(withMember(`${'['.repeat(500)}${']'.repeat(500)}`)).not.toThrow();
    for (const value of ['1e400', '-1e400', '[{"a":1e400}]', `${'['.repeat(513)}${']'.repeat(513)}`]) {
      expect(withMember(value)).toThrow(refused('corrupt'));
    }
  });

  test('with wraps that are missing, too many, or of a wrong shape', () => {
    const good = { provider: 'local', keyId: 'k', wrapped: 'AAAA' };
    const bad: unknown[] = [
      undefined,
      null,
      {},
      [],
      'x',
      [null],
      [[]],
      ['x'],
      Array.from({ length: 17 }, () => good),
      [{ ...good, provider: 'Local' }],
      [{ ...good, provider: '' }],
      [{ ...good, provider: 'x'.repeat(65) }],
      [{ ...good, provider: 5 }],
      [{ ...good, keyId: '' }],
      [{ ...good, keyId: 'x'.repeat(2_049) }],
      [{ ...good, keyId: null }],
      [{ ...good, wrapped: '' }],
      [{ ...good, wrapped: 'AAAA=' }],
      [{ ...good, wrapped: 'AB' }],
      [{ ...good, wrapped: 'A' }],
      [{ ...good, wrapped: '+AAA' }],
      [{ ...good, wrapped: [1] }],
      [{ ...good, wrapped: undefined }],
      [{ ...good, signature: '' }],
      [{ ...good, signature: 5 }],
      [{ ...good, signature: 'A?' }],
      [{ ...good, signature: null }],
    ];
    for (const wraps of bad) {
      expect(() =>
        parseEdited((_, key) => {
          key['wraps'] = wraps;
        }),
      ).toThrow(refused('corrupt'));
    }
    for (const wraps of [
      [good],
      Array.from({ length: 16 }, () => good),
      [{ ...good, signature: 'AAAA', more: 1 }],
      [{ ...good, provider: 'x'.repeat(64), keyId: 'x'.repeat(2_048) }],
    ]) {
      expect(() =>
        parseEdited((_, key) => {
          key['wraps'] = wraps;
        }),
      ).not.toThrow();
    }
  });

  test('with MACs of a wrong shape, another number of lines, or anything but printable ASCII', () => {
    const body = encodeBody(contentOf([entryOf(idOf(1))]));
    const mac = Buffer.alloc(32, 1).toString('base64url');
    const withMacs = (line: string) => () => parseDocument(`${body}\n${line}`, RING);
    expect(withMacs(`{"macs":{"x":"${mac}"},"more":1}`)).not.toThrow();
    const sixtyFour = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`k${i}`, mac]));
    expect(parseDocument(`${body}\n${JSON.stringify({ macs: sixtyFour })}`, RING).macs.size).toBe(64);
    for (const line of [
      '{}',
      '[]',
      'null',
      '{"macs":null}',
      '{"macs":[]}',
      '{"macs":{"x":"AAAA"}}',
      `{"macs":{"x":"${mac}="}}`,
      `{"macs":{"x":"${mac}AAAA"}}`,
      '{"macs":{"x":5}}',
      '',
      `{"macs":{}}\n`,
      `{"macs":{}}\r`,
      `{"macs":{}}\n{}`,
      `{"macs":{"é":"${mac}"}}`,
      '{"macs":{}}\0',
      JSON.stringify({ macs: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, mac])) }),
    ]) {
      expect(withMacs(line)).toThrow(refused('corrupt'));
    }
    const started = body.slice(0, -1);
    for (const first of [
      `${started},"more":"é"}`,
      `${started},"more":"\u007f"}`,
      `\t${body}`,
      `\r${body}`,
      `{}\n${body}`,
    ]) {
      expect(() => parseDocument(`${first}\n{"macs":{}}`, RING)).toThrow(refused('corrupt'));
    }
    expect(() => parseDocument(`${started},"more":"e"}\n{"macs":{}}`, RING)).not.toThrow();
    for (const text of ['', '\n', body, `${body}\n`, `\n${body}`, `${body}\n\n{"macs":{}}`, ` \n `]) {
      expect(() => parseDocument(text, RING)).toThrow(refused('corrupt'));
    }
  });
});

describe('the error of a document says what is wrong with it', () => {
  const good = { provider: 'local', keyId: 'k', wrapped: 'AAAA' };

  test.each<readonly [string, unknown]>([
    ['created', { created: 'now' }],
    ['activates', { activates: 5 }],
    ['sealsUntil', { sealsUntil: null }],
    ['opensUntil', { opensUntil: '' }],
    ['revoked', { revoked: 'never' }],
    ['wrap is not an object', { wraps: [5] }],
    ['wrapped', { wraps: [{ ...good, wrapped: '' }] }],
    ['signature', { wraps: [{ ...good, signature: '' }] }],
  ])('%s, of a key', (what, change) => {
    expect(() => parseEdited((_, key) => void Object.assign(key, change))).toThrow(`corrupt: ${what}`);
  });

  test.each([
    ['first line is not JSON', '{\n{"macs":{}}'],
    ['first line is not an object', '[]\n{"macs":{}}'],
    ['second line is not JSON', `${encodeBody(contentOf([]))}\n{`],
    ['second line is not an object', `${encodeBody(contentOf([]))}\n[]`],
    ['macs is not an object', `${encodeBody(contentOf([]))}\n{"macs":5}`],
    ['mac', `${encodeBody(contentOf([]))}\n{"macs":{"x":"?"}}`],
    ['key is not an object', `${encodeBody(contentOf([])).replace('"keys":[]', '"keys":[5]')}\n{"macs":{}}`],
  ])('%s', (what, text) => {
    expect(() => parseDocument(text, RING)).toThrow(`corrupt: ${what}`);
  });
});

describe('what is written', () => {
  const signed = { provider: 'local', keyId: 'k/1', wrapped: Buffer.from([0xfb, 0xff, 0]), unknown: {} };
  const fourTimes = ['2026-11-21T03:00:00Z', '2026-11-21T04:00:00Z', '2026-11-21T05:00:00Z', '2026-11-21T06:00:00Z'];
  const [created, activates, sealsUntil, opensUntil] = fourTimes.map((time) => JSON.stringify(time));
  const id = JSON.stringify(idOf(1));

  test('F27 is the first line as the document of the formats gives it, character for character', () => {
    const revoked = entryOf(idOf(1), { wraps: [{ ...signed, signature: Buffer.from([1, 2, 3]) }], revoked: T0 });
    expect(encodeBody(contentOf([revoked]))).toBe(
      `{"format":"sealring/ring/1","ring":"payments","epoch":3,"critical":[],"keys":[{"id":${id},"created":${created},` +
        `"activates":${activates},"sealsUntil":${sealsUntil},"opensUntil":${opensUntil},"revoked":${created},` +
        `"wraps":[{"provider":"local","keyId":"k/1","wrapped":"-_8A","signature":"AQID"}]}]}`,
    );
    expect(encodeDocument('{}', new Map([['x', Buffer.from([0xfb])]]))).toBe('{}\n{"macs":{"x":"-w"}}');
  });

  test('F35 is signed as canonical JSON of ring, id, times, provider, key version and ciphertext, sorted', () => {
    expect(Buffer.from(signedBytes(RING, entryOf(idOf(1)), signed)).toString()).toBe(
      `{"activates":${activates},"created":${created},"id":${id},"keyId":"k/1","opensUntil":${opensUntil},` +
        `"provider":"local","ring":"payments","sealsUntil":${sealsUntil},"wrapped":"-_8A"}`,
    );
  });
});

describe('what a wrap is bound to', () => {
  test('F25, F26 is the ring, its purpose and all four times, each in one spelling', () => {
    expect(wrapContext(RING, entryOf(idOf(1)))).toEqual({
      'sealring:ring': 'payments',
      'sealring:purpose': 'data-key',
      'sealring:times': '2026-11-21T03:00:00Z/2026-11-21T04:00:00Z/2026-11-21T05:00:00Z/2026-11-21T06:00:00Z',
    });
    const [one] = entryOf(idOf(1)).wraps;
    if (one === undefined) throw new Error('an entry has a wrap');
    expect(sameWrap(one, { ...one, wrapped: Uint8Array.from(one.wrapped) })).toBe(true);
    for (const other of [
      { provider: 'x' },
      { keyId: 'x' },
      { wrapped: Buffer.alloc(60, 8) },
      { wrapped: Buffer.alloc(61, 7) },
    ]) {
      expect(sameWrap(one, { ...one, ...other })).toBe(false);
    }
  });
});

describe('F26 who may say what the ring is', () => {
  /** Three keys of a member, oldest first, and a stranger's. */
  const keys = Array.from({ length: 3 }, () => new HeldKey(randomBytes(32), RING));
  const stranger = new HeldKey(randomBytes(32), RING);
  const own = keys.map((held, i): OwnKey => ({ id: held.id, activates: T0 + i * HOUR, held }));
  const [oldest, middle, latest] = keys as [HeldKey, HeldKey, HeldKey];

  function signed(
    signers: readonly HeldKey[],
    options: {
      readonly revoked?: readonly HeldKey[];
      readonly forged?: readonly HeldKey[];
      readonly extra?: readonly HeldKey[];
    } = {},
  ): RingDocument {
    const { revoked = [], forged = [], extra = [] } = options;
    const entries = [...keys, ...extra].map((key) =>
      entryOf(key.id, { revoked: revoked.includes(key) ? T0 : undefined }),
    );
    const body = encodeBody(contentOf(entries));
    const all = authenticate(body, signers);
    for (const key of forged) all.set(key.id, randomBytes(32));
    return parseDocument(encodeDocument(body, all), RING);
  }

  const table: readonly (readonly [string, RingDocument, Authenticity])[] = [
    ['signed by all keys', signed(keys), 'accepted'],
    ['signed by the newest alone', signed([latest]), 'accepted'],
    ['signed by all but the newest', signed([oldest, middle]), 'older branch'],
    ['signed by the oldest alone', signed([oldest]), 'older branch'],
    ['signed by nobody', signed([]), 'forged'],
    ['signed by a stranger', signed([stranger], { extra: [stranger] }), 'forged'],
    ['signed by all, one MAC wrong', signed(keys, { forged: [oldest] }), 'forged'],
    ['signed by the oldest, the newest MAC wrong', signed([oldest], { forged: [latest] }), 'forged'],
    ['all MACs wrong', signed([], { forged: keys }), 'forged'],
    ['revoking the newest, signed by the one before', signed([middle], { revoked: [latest] }), 'accepted'],
    ['revoking the newest, signed by the oldest', signed([oldest], { revoked: [latest] }), 'older branch'],
    ['revoking the newest, signed by the newest only', signed([latest], { revoked: [latest] }), 'older branch'],
    ['revoking all, signed by the newest', signed([latest], { revoked: keys }), 'accepted'],
    ['revoking all, signed by older ones', signed([oldest, middle], { revoked: keys }), 'older branch'],
    [
      'revoking all, and adding a self-wrapped key that signs',
      signed([stranger], { revoked: keys, extra: [stranger] }),
      'forged',
    ],
    ['revoking all, signed by nobody', signed([], { revoked: keys }), 'forged'],
    [
      'revoking all, adding a self-wrapped key, and copying MACs that do not fit',
      signed([stranger], { revoked: keys, extra: [stranger], forged: keys }),
      'forged',
    ],
  ];

  test.each(table)('a document %s', (_, document, verdict) => {
    expect(judge(document, own, [])).toBe(verdict);
    expect(judge(document, own.toReversed(), [])).toBe(verdict);
  });

  test('MACs of another document of the same ring do not fit', () => {
    const [, line = ''] = textOf(contentOf(keys.map((key) => entryOf(key.id))), keys).split('\n');
    const changed = contentOf(keys.map((key) => entryOf(key.id, { opensUntil: T0 + 4 * HOUR })));
    expect(judge(parseDocument(`${encodeBody(changed)}\n${line}`, RING), own, [])).toBe('forged');
  });

  test('a key that was revoked since signs nothing but an old branch, also together with a stranger', () => {
    const leaked = new HeldKey(randomBytes(32), RING);
    leaked.limitToRing();
    expect(judge(signed([leaked]), own, [leaked])).toBe('ended branch');
    expect(judge(signed([leaked, stranger], { revoked: keys, extra: [stranger] }), own, [leaked])).toBe('ended branch');
    expect(judge(signed([leaked]), own, [])).toBe('forged');
    expect(judge(signed([leaked, latest]), own, [leaked])).toBe('accepted');
  });

  test('a member without keys takes nobody’s word', () => {
    expect(judge(signed(keys), [], [])).toBe('forged');
  });

  test('of two keys active at one time the greater id decides', () => {
    const same = keys.map((held): OwnKey => ({ id: held.id, activates: T0, held }));
    const [greatest] = keys.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    if (greatest === undefined) throw new Error('there are keys');
    for (const key of keys) {
      expect(judge(signed([key]), same, [])).toBe(key === greatest ? 'accepted' : 'older branch');
    }
  });

  test('a MAC is HMAC-SHA-256 with sub(ring-mac) over the bytes of the first line', () => {
    const dataKey = randomBytes(32);
    const held = new HeldKey(dataKey, RING);
    const body = encodeBody(contentOf([entryOf(held.id)]));
    const sub = createHmac('sha512', dataKey).update('sealring/v1/ring-mac\0\0\x08payments').digest().subarray(0, 32);
    const mac = createHmac('sha256', sub).update(Buffer.from(body, 'ascii')).digest();
    expect(authenticate(body, [held]).get(held.id)).toEqual(mac);
    const document = parseDocument(encodeDocument(body, new Map([[held.id, mac]])), RING);
    expect([isSignedBy(document, held), contradicts(document, held)]).toEqual([true, false]);
    const elsewhere = new HeldKey(dataKey, 'orders');
    expect([isSignedBy(document, elsewhere), contradicts(document, elsewhere)]).toEqual([false, true]);
    expect([isSignedBy(document, stranger), contradicts(document, stranger)]).toEqual([false, false]);
  });
});

describe('F31 absence is not deletion', () => {
  const now = T0 + HOUR;
  const known = contentOf([entryOf(idOf(1)), entryOf(idOf(2), { revoked: T0 })]);

  test('a document lacks what was lost, a live key or a revocation, and not what has ended', () => {
    expect(lacks(known, known, now)).toBe(false);
    expect(lacks(contentOf([entryOf(idOf(2), { revoked: T0 })]), known, now)).toBe(true);
    expect(lacks(contentOf([entryOf(idOf(1))]), known, now)).toBe(true);
    expect(lacks(contentOf([entryOf(idOf(1)), entryOf(idOf(2))]), known, now)).toBe(true);
    expect(lacks(contentOf([...known.entries, entryOf(idOf(3))]), known, now)).toBe(false);
    expect(lacks(contentOf([]), known, T0 + 3 * HOUR)).toBe(false);
    expect(lacks(contentOf([]), known, T0 + 3 * HOUR - 1)).toBe(true);
  });

  test('a union keeps a revocation of either side, and of two the earlier one', () => {
    for (const [mine, theirs, expected] of [
      [undefined, undefined, undefined],
      [T0, undefined, T0],
      [undefined, T0, T0],
      [T0, T0 + HOUR, T0],
      [T0 + HOUR, T0, T0],
    ]) {
      const of = (revoked: number | undefined) => contentOf([entryOf(idOf(1), { revoked })]);
      expect(union(of(mine), of(theirs)).entries.map(({ revoked }) => revoked)).toEqual([expected]);
    }
  });

  test('a union lacks nothing of either, revocations and wraps included, whichever side had them', () => {
    fc.assert(
      fc.property(content, content, (a, b) => {
        const both = union(a, b);
        expect(lacks(both, a, 0)).toBe(false);
        expect(lacks(both, b, 0)).toBe(false);
        expect(both.epoch).toBe(Math.max(a.epoch, b.epoch));
        expect(new Set(both.entries.map((each) => each.id)).size).toBe(both.entries.length);
      }),
      { numRuns: 100 },
    );
    const other = { provider: 'aws-kms', keyId: 'x', wrapped: Buffer.alloc(9, 1), unknown: {} };
    const theirs = contentOf([entryOf(idOf(1), { revoked: T0 + 5_000, wraps: [other, ...entryOf('').wraps] })]);
    const mine = contentOf([entryOf(idOf(1), { revoked: T0 + 1_000 })]);
    for (const merged of [union(mine, theirs), union(theirs, mine)]) {
      expect(merged.entries[0]?.revoked).toBe(T0 + 1_000);
      expect(merged.entries[0]?.wraps.map((each) => each.provider).toSorted()).toEqual(['aws-kms', 'local']);
    }
  });
});

describe('the schedule', () => {
  const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
  const key: ScheduledKey = {
    id: 'k',
    created: T0,
    activates: T0 + 1_000,
    sealsUntil: T0 + 5_000,
    opensUntil: T0 + 9_000,
    revoked: false,
  };

  test.each([
    // at, may seal, may open, state when it is the sealing key, state when another is
    // A clock that stepped back: the key has sealed already, and goes on.
    [key.activates - 1, false, true, 'active', 'propagating'],
    [key.activates, true, true, 'active', 'verify-only'],
    [key.activates + 1, true, true, 'active', 'verify-only'],
    [key.sealsUntil - 1, true, true, 'active', 'verify-only'],
    [key.sealsUntil, false, true, undefined, 'verify-only'],
    [key.sealsUntil + 1, false, true, undefined, 'verify-only'],
    [key.opensUntil - 1, false, true, undefined, 'verify-only'],
    [key.opensUntil, false, false, 'retired', 'retired'],
    [key.opensUntil + 1, false, false, 'retired', 'retired'],
  ] as const)('at %i: seals %s, opens %s', (at, seals, opens, ifSealing, ifNot) => {
    expect([maySeal(key, at), mayOpen(key, at)]).toEqual([seals, opens]);
    // A key past its sealing time is never named as the one that seals.
    expect(ifSealing ?? stateOf(key, at, 'k')).toBe(stateOf(key, at, 'k'));
    expect(stateOf(key, at, 'other')).toBe(ifNot);
    expect(stateOf(key, at, undefined)).toBe(ifNot);
    const revoked = { ...key, revoked: true };
    expect([maySeal(revoked, at), mayOpen(revoked, at), stateOf(revoked, at, 'k')]).toEqual([false, false, 'revoked']);
  });

  test.each([
    ['scheduled', 4_500],
    ['requested', 4_500],
    ['initial', -300],
    ['revocation', -300],
    ['emergency', 300 + 60 + 300],
  ] as const)('the times of a %s key are the formulas of the document', (reason, activatesAfter) => {
    const made = timesOfNewKey(reason, T0, policy);
    const activates = T0 + activatesAfter * 1_000;
    const sealsUntil = activates + (86_400 + 23_400) * 1_000;
    const opensUntil = sealsUntil + (3_600 + 600) * 1_000;
    expect(made).toEqual({ created: T0, activates, sealsUntil, opensUntil });
    expect(rotateAt(made, policy)).toBe(activates + (86_400 - 4_500) * 1_000);
    expect(removableFrom(made, policy)).toBe(opensUntil + 300_000);
  });

  test('times are whole seconds in order, and rounded so that nobody seals earlier or loses a token', () => {
    const reason = fc.constantFrom('scheduled', 'requested', 'initial', 'revocation', 'emergency');
    const fractional = resolvePolicy(
      { clockSkewSeconds: 0.7, refreshEverySeconds: 0.3 },
      { storeKind: 's3', createNow: false },
    );
    fc.assert(
      fc.property(reason, fc.double({ min: 0, max: 4e12, noNaN: true }), fc.boolean(), (why, now, whole) => {
        const own = whole ? policy : fractional;
        const made = timesOfNewKey(why, now, own);
        for (const time of Object.values(made)) expect(time / 1_000).toSatisfy(Number.isSafeInteger);
        expect(made.activates).toBeLessThan(made.sealsUntil);
        expect(made.sealsUntil).toBeLessThan(made.opensUntil);
        expect(made.created).toBeLessThanOrEqual(now);
        const late = why === 'scheduled' || why === 'requested';
        const atOnce = why === 'initial' || why === 'revocation';
        expect(!late || made.activates >= now + own.propagationSeconds * 1_000).toBe(true);
        expect(!atOnce || made.activates <= now - own.clockSkewSeconds * 1_000).toBe(true);
        const life = (own.tokenLifetimeSeconds + 2 * own.clockSkewSeconds) * 1_000;
        expect(made.opensUntil - made.sealsUntil).toBeGreaterThanOrEqual(life - 0.001);
      }),
      { numRuns: 2_000 },
    );
  });

  test('F6 the wait before a rotation is 0 to R, grows with u, and most members draw one near R', () => {
    const r = 300_000;
    expect(rotationDelayMs(0, policy)).toBe(0);
    expect(rotationDelayMs(1 - 2 ** -32, policy)).toBeLessThan(r);
    expect(rotationDelayMs(1 - 2 ** -32, policy)).toBeGreaterThan(r * 0.999_99);
    // R × ln(1 + u(e^10 − 1)) / 10 < x R exactly when u < (e^(10 x) − 1) / (e^10 − 1).
    const share = (x: number) => (Math.exp(10 * x) - 1) / (Math.exp(10) - 1);
    const delays = Array.from({ length: 10_000 }, (_, i) => rotationDelayMs((i + 0.5) / 10_000, policy));
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    for (const x of [0.1, 0.25, 0.5, 0.75, 0.9]) {
      const below = delays.filter((delay) => delay < x * r).length;
      expect(Math.abs(below - 10_000 * share(x))).toBeLessThanOrEqual(1);
    }
    expect(delays.filter((delay) => delay < r / 2)).toHaveLength(67);
    expect(
      rotationDelayMs(0.5, resolvePolicy({ refreshEverySeconds: 30 }, { storeKind: 's3', createNow: false })),
    ).toBeCloseTo(rotationDelayMs(0.5, policy) / 10, 6);
  });

  test('F6 of 10 000 members a few at most publish before the others have read the new ring', () => {
    // The winner's write is read by whoever wakes later than the time a read takes, 1 s here.
    let seed = 1;
    const uniform = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    const publishers = Array.from({ length: 50 }, () => {
      const delays = Array.from({ length: 10_000 }, () => rotationDelayMs(uniform(), policy));
      const first = delays.reduce((least, delay) => Math.min(least, delay));
      return delays.filter((delay) => delay < first + 1_000).length;
    });
    expect(publishers.reduce((sum, count) => sum + count, 0) / publishers.length).toBeLessThan(3);
  });

  test('keys are ordered by activation, then by id, whatever the order they come in', () => {
    const some = [
      { activates: 2, id: 'a' },
      { activates: 1, id: 'z' },
      { activates: 2, id: 'b' },
      { activates: 2, id: 'B' },
    ];
    expect(some.toSorted(compareAge).map((each) => each.id)).toEqual(['z', 'B', 'a', 'b']);
    expect(newest(some)?.id).toBe('b');
    expect(newest(some.toReversed())?.id).toBe('b');
    expect(newest([])).toBeUndefined();
    expect(compareAge({ activates: 2, id: 'a' }, { activates: 2, id: 'a' })).toBe(0);
  });
});

describe('F10 the kill switch', () => {
  type Answer = readonly [seconds: number, kind: 'denied' | 'disabled' | 'not-found'];

  /** When it stops sealing, seconds; undefined: not. */
  function stopsAt(...answers: readonly Answer[]): number | undefined {
    const { trippedAt } = answers.reduce((state, [at, kind]) => afterRefusal(state, kind, at * 1_000), ARMED);
    return trippedAt === undefined ? undefined : trippedAt / 1_000;
  }

  const denied = (...seconds: number[]): Answer[] => seconds.map((at) => [at, 'denied']);
  const disabled = (...seconds: number[]): Answer[] => seconds.map((at) => [at, 'disabled']);

  const table: readonly (readonly [string, readonly Answer[], number | undefined])[] = [
    ['one stray refusal does not stop a fleet', denied(0), undefined],
    ['two do not either', denied(0, 30), undefined],
    ['three at least 8 s apart within 60 s do', denied(0, 8, 16), 16],
    ['at the widest', denied(0, 30, 60), 60],
    ['not over more than 60 s', denied(0, 30, 60.001), undefined],
    ['but the window slides', denied(0, 30, 61, 69), 69],
    ['refusals less than 8 s apart count once', denied(0, 7.999, 15.998), undefined],
    ['a burst of a hundred counts once', denied(...Array.from({ length: 100 }, (_, i) => i * 0.07)), undefined],
    ['three bursts stop', denied(0, 1, 2, 10, 11, 12, 20, 21), 20],
    ['a steady stream of one per second stops', denied(...Array.from({ length: 30 }, (_, i) => i)), 16],
    ['two of a disabled key stop', disabled(0, 8), 8],
    ['two of a disabled key in one burst do not', disabled(0, 7.9), undefined],
    ['two of a disabled key over more than 60 s do not', disabled(0, 60.001), undefined],
    [
      'not found counts as denied',
      [
        [0, 'not-found'],
        [10, 'denied'],
        [20, 'not-found'],
      ],
      20,
    ],
    [
      'one disabled and one denied do not stop',
      [
        [0, 'disabled'],
        [10, 'denied'],
      ],
      undefined,
    ],
    [
      'nor the other way round',
      [
        [0, 'denied'],
        [10, 'disabled'],
      ],
      undefined,
    ],
    [
      'but three of any kind do',
      [
        [0, 'disabled'],
        [10, 'denied'],
        [20, 'denied'],
      ],
      20,
    ],
    [
      'and two disabled around a denied one',
      [
        [0, 'disabled'],
        [10, 'denied'],
        [20, 'disabled'],
      ],
      20,
    ],
    ['once stopped it stays stopped, since the same moment', denied(0, 10, 20, 30, 4_000), 20],
  ];

  test.each(table)('%s', (_, answers, expected) => {
    expect(stopsAt(...answers)).toBe(expected);
  });

  test('only answers about the right to use the key are refusals', () => {
    const kinds = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'] as const;
    expect(kinds.filter((kind) => isRefusal(kind))).toEqual(['denied', 'disabled', 'not-found']);
  });

  test('F23 remembers only what it needs, however often it is refused', () => {
    let state = ARMED;
    for (let at = 0; at < 1_000; at++) {
      state = afterRefusal({ ...state, trippedAt: undefined }, 'denied', at * 8_000);
      expect(state.refusals.length).toBeLessThanOrEqual(9);
    }
    expect(ARMED.refusals).toEqual([]);
  });
});
