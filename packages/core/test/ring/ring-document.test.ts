import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/base/canonical-json.ts';
import { RingStoreError, type RingStoreErrorKind } from '../../src/contracts/ring-store.ts';
import {
  encodeDocument,
  type Macs,
  parseDocument,
  type RingDocument,
  type RingEntry,
  type RingWrap,
  sameWrap,
  signedBytes,
  wrapContext,
} from '../../src/ring/document.ts';

const RING = 'payments';
const RING_FORMAT = 'sealring/ring/1';
const T0 = Date.parse('2026-11-21T03:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const CLAIM = 'AAAAAAAAAAAAAAAAAAAAAA';

const idOf = (n: number): string => Buffer.from(String(n).padStart(9, '0')).toString('base64url');
const macOf = (n: number): Buffer => Buffer.alloc(32, n);
const macsOf = (count: number): Macs => new Map(Array.from({ length: count }, (_, i) => [idOf(1_000 + i), macOf(i)]));

function wrapOf(more: Partial<RingWrap> = {}): RingWrap {
  return { provider: 'local', keyId: 'k', wrapped: Buffer.alloc(60, 7), mac: macOf(9), ...more };
}

function entryOf(id: string, more: Partial<RingEntry> = {}): RingEntry {
  return {
    id,
    created: T0,
    activates: T0 + HOUR,
    sealsUntil: T0 + 2 * HOUR,
    opensUntil: T0 + 3 * HOUR,
    vouchers: new Map(),
    ancestors: undefined,
    revoked: undefined,
    wraps: [wrapOf()],
    ...more,
  };
}

function documentOf(entries: readonly RingEntry[], claim?: string): RingDocument {
  return { ring: RING, claim, entries };
}

const textOf = (...entries: readonly RingEntry[]): string => encodeDocument(documentOf(entries));

const refused = (kind: RingStoreErrorKind) => expect.objectContaining({ name: 'RingStoreError', kind });

type Json = Record<string, unknown>;

/** A document of one key with all optional members, as text, after an edit of its JSON. */
function edited(edit: (document: Json, key: Json, wrap: Json, revoked: Json, ancestors: Json) => void): string {
  const entry = entryOf(idOf(1), {
    vouchers: macsOf(2),
    ancestors: { ids: [idOf(2), idOf(3)], mac: macOf(8) },
    revoked: { at: T0, by: macsOf(2) },
    wraps: [wrapOf({ signature: Buffer.from('s') })],
  });
  const document = JSON.parse(encodeDocument(documentOf([entry], CLAIM))) as Json;
  const [key = {}] = document['keys'] as Json[];
  const [wrap = {}] = key['wraps'] as Json[];
  edit(document, key, wrap, key['revoked'] as Json, key['ancestors'] as Json);
  return JSON.stringify(document);
}

function parseEdited(edit: Parameters<typeof edited>[0]): RingDocument {
  return parseDocument(edited(edit), RING);
}

function parsedOrError(text: string): RingDocument | Error {
  try {
    return parseDocument(text, RING);
  } catch (error) {
    return error instanceof Error ? error : new Error('something else was thrown');
  }
}

/* Any document that a member could have written. */

const second = fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000);
const times = fc
  .tuple(
    second,
    fc.integer({ min: -366 * 86_400, max: 366 * 86_400 }),
    fc.integer({ min: 1, max: 6e7 }),
    fc.integer({ min: 1, max: 6e7 }),
  )
  .map(([created, lead, seals, opens]) => {
    const activates = created + lead * 1_000;
    const sealsUntil = activates + seals * 1_000;
    return { created, activates, sealsUntil, opensUntil: sealsUntil + opens * 1_000 };
  })
  .filter(({ activates }) => activates >= 0);
const bytes = fc.uint8Array({ minLength: 1, maxLength: 90 }).map((array) => Buffer.from(array));
const mac = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((array) => Buffer.from(array));
// Includes ids of twelve digits: JavaScript sorts names that are array indices, and these are not.
const keyId = fc.oneof(
  fc.uint8Array({ minLength: 9, maxLength: 9 }).map((array) => Buffer.from(array).toString('base64url')),
  fc.integer({ min: 0, max: 999_999_999_999 }).map((number) => String(number).padStart(12, '0')),
);
const macs = fc
  .uniqueArray(fc.tuple(keyId, mac), { maxLength: 8, selector: ([id]) => id })
  .map((pairs): Macs => new Map(pairs));
const wrap = fc
  .record({
    provider: fc.stringMatching(/^[a-z0-9-]{1,64}$/),
    keyId: fc.string({ minLength: 1, maxLength: 80, unit: 'binary' }),
    wrapped: bytes,
    signature: fc.option(bytes, { nil: undefined }),
    mac,
  })
  .map(({ signature, ...rest }): RingWrap => ({ ...rest, ...(signature === undefined ? {} : { signature }) }));
const entry = fc
  .record({
    id: keyId,
    times,
    vouchers: macs,
    ancestors: fc.option(fc.record({ ids: fc.array(keyId, { maxLength: 8 }), mac }), { nil: undefined }),
    revoked: fc.option(fc.record({ at: second, by: macs }), { nil: undefined }),
    wraps: fc.array(wrap, { minLength: 1, maxLength: 3 }),
  })
  .map(({ times: own, ...rest }): RingEntry => ({ ...own, ...rest }));
const document: fc.Arbitrary<RingDocument> = fc.record({
  ring: fc.constant(RING),
  claim: fc.option(fc.stringMatching(/^[\w-]{22}$/), { nil: undefined }),
  entries: fc.uniqueArray(entry, { maxLength: 4, selector: (each) => each.id }),
});

describe('a ring document', () => {
  test('a ring document is one line of ASCII, and parsing it returns exactly the encoded document', () => {
    fc.assert(
      fc.property(document, (given) => {
        const text = encodeDocument(given);
        expect(text).toMatch(/^[\x20-\x7e]+$/);
        const parsed = parseDocument(text, RING);
        expect(parsed).toEqual(given);
        for (const [i, each] of parsed.entries.entries()) {
          // `toEqual` ignores the order of a map, but another order would be a second spelling.
          expect([...each.vouchers.keys()]).toEqual([...(given.entries[i]?.vouchers.keys() ?? [])]);
        }
        expect(encodeDocument(parsed)).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  test('an accepted respelling of a ring document is as long as the original, and means the same', () => {
    const respelt = fc.tuple(document, fc.nat(), fc.nat(8)).map(([given, at, how]): [RingDocument, string] => {
      const text = encodeDocument(given);
      const place = at % text.length;
      const character = text[place] as string;
      const escape = `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
      const [member = ''] = text.match(/"format":"[^"]*"/) ?? [];
      const turned = canonicalJson(withMembersTurned(JSON.parse(text)));
      const others = [
        // Within another escape it would have another meaning.
        text.includes('\\') ? text : text.slice(0, place) + escape + text.slice(place + 1),
        text.replace('{', '{ '),
        `{${member},${text.slice(1)}`,
        ` ${text}`,
        `${text} `,
        text.replaceAll(/\\u([0-9a-f]{4})/g, (_, hex: string) => `\\u${hex.toUpperCase()}`),
        `{${text.slice(member.length + 2, -1)},${member}}`,
        turned,
        JSON.stringify(JSON.parse(text)),
      ];
      return [given, others[how] ?? text];
    });
    fc.assert(
      fc.property(respelt, ([given, text]) => {
        const result = parsedOrError(text);
        if (result instanceof RingStoreError) return;
        if (result instanceof Error) throw result;
        expect(text).toHaveLength(encodeDocument(given).length);
        expect(result).toEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  test('every text is parsed or refused with a RingStoreError', () => {
    const valid = textOf(entryOf(idOf(1)), entryOf(idOf(2), { vouchers: macsOf(1) }));
    const members = fc.dictionary(
      fc.constantFrom('format', 'ring', 'claim', 'keys', '__proto__', 'constructor'),
      fc.oneof(
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom(RING_FORMAT, RING, CLAIM, [], [{}], [[]], [null], [{ id: idOf(1), wraps: [null] }]),
      ),
    );
    const almost = members.map((each) => JSON.stringify(each));
    const cut = fc.nat(valid.length).map((at) => valid.slice(0, at));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json({ maxDepth: 3 }), almost, cut), (text) => {
        const result = parsedOrError(text);
        expect(!(result instanceof Error) || result instanceof RingStoreError).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });

  test('a changed document is refused, or is exactly as long as its content requires', () => {
    const original = textOf(
      entryOf(idOf(1), { vouchers: macsOf(2) }),
      entryOf(idOf(2), { revoked: { at: T0, by: macsOf(2) } }),
    );
    const edit = fc.tuple(
      fc.nat(original.length - 1),
      fc.nat(4),
      fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('"', ',', '0', '9', 'A', '{}', '[]', 'null', '')),
    );
    let parsed = 0;
    fc.assert(
      fc.property(edit, ([at, removed, inserted]) => {
        const text = original.slice(0, at) + inserted + original.slice(at + removed);
        const result = parsedOrError(text);
        if (result instanceof RingStoreError) return;
        if (result instanceof Error) throw result;
        parsed += 1;
        expect(encodeDocument(result)).toHaveLength(text.length);
      }),
      { numRuns: 5_000 },
    );
    expect(parsed).toBeGreaterThan(100);
  });
});

/** The same JSON with the members of every object in reverse order. */
function withMembersTurned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMembersTurned);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).toReversed();
  return Object.fromEntries(members.map(([name, each]) => [name, withMembersTurned(each)]));
}

describe('a document that a member must refuse', () => {
  const badIds = [
    '',
    'AAAA',
    'A'.repeat(11),
    'A'.repeat(13),
    'A'.repeat(16),
    'AAAAAAAAAAA=',
    'AAAA+AAAAAAA',
    'AAAA/AAAAAAA',
  ];
  test('a document is refused if its format is unknown (F27)', () => {
    for (const format of ['sealring/ring/2', 'sealring/ring/', '', null, 1, undefined, [RING_FORMAT]]) {
      const parse = () => parseEdited((each) => void (each['format'] = format));
      expect(parse).toThrow(refused('corrupt'));
    }
  });

  test('a document with the name of another ring is refused (F25)', () => {
    for (const ring of ['orders', '', 'Payments', null, 5, undefined, [RING]]) {
      const parse = () => parseEdited((each) => void (each['ring'] = ring));
      expect(parse).toThrow(refused('corrupt'));
    }
    for (const ring of ['', null, 5, undefined, [RING]]) {
      const text = edited((each) => void (each['ring'] = ring));
      expect(() => parseDocument(text)).toThrow(refused('corrupt'));
    }
    expect([parseEdited(() => undefined).ring, parseDocument(edited(() => undefined)).ring]).toEqual([RING, RING]);
  });

  test.each<readonly [string, Parameters<typeof edited>[0], Parameters<typeof edited>[0]]>([
    ['document', (it) => void (it['x'] = 1), (it) => void (it['epoch'] = 1)],
    ['key', (_, it) => void (it['x'] = 1), (_, it) => void (it['critical'] = [])],
    ['wrap', (_, __, it) => void (it['x'] = 1), (_, __, it) => void (it['constructor'] = 1)],
    ['ancestors', (_, __, ___, ____, it) => void (it['x'] = 1), (_, __, ___, ____, it) => void (it['by'] = {})],
    ['revocation', (_, __, ___, it) => void (it['x'] = 1), (_, __, ___, it) => void (it['toString'] = null)],
  ])('a document with an unknown property of the %s is refused', (_, one, other) => {
    expect(() => parseEdited(one)).toThrow('corrupt: an unknown property');
    expect(() => parseEdited(other)).toThrow('corrupt: an unknown property');
  });

  test('a document with a member __proto__ at any level is refused', () => {
    const text = edited(() => undefined);
    for (const at of [...text.matchAll(/\{(?=")/g)].map(({ index }) => index + 1)) {
      const polluted = `${text.slice(0, at)}"__proto__":{"polluted":true},${text.slice(at)}`;
      expect(() => parseDocument(polluted, RING)).toThrow(refused('corrupt'));
    }
    expect('polluted' in {}).toBe(false);
  });

  test('a document with a claim that is not 16 bytes in base64url is refused', () => {
    for (const claim of [
      '',
      'A'.repeat(21),
      'A'.repeat(23),
      `${'A'.repeat(21)}=`,
      `${'A'.repeat(21)}+`,
      null,
      5,
      [],
      [CLAIM],
      {},
    ]) {
      const parse = () => parseEdited((each) => void (each['claim'] = claim));
      expect(parse).toThrow('corrupt: claim is invalid');
    }
    expect(parseDocument(encodeDocument(documentOf([], CLAIM)), RING)).toEqual(documentOf([], CLAIM));
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
    '2026-11-21T03:00:00.123Z',
    '+012026-11-21T03:00:00Z',
    ['2026-11-21T03:00:00Z'],
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

  test.each(['created', 'activates', 'sealsUntil', 'opensUntil'])(
    'a document with a %s that is not a time in canonical form is refused',
    (name) => {
      for (const time of badTimes) {
        expect(() => parseEdited((_, key) => void (key[name] = time))).toThrow(`corrupt: ${name} is invalid`);
      }
    },
  );

  test('a document with a revocation whose time is not in canonical form is refused', () => {
    for (const time of badTimes) {
      expect(() => parseEdited((_, __, ___, revoked) => void (revoked['at'] = time))).toThrow(
        'corrupt: revoked.at is invalid',
      );
    }
  });

  test.each(['id', 'created', 'activates', 'sealsUntil', 'opensUntil', 'vouchers', 'wraps'])(
    'a document with a key without %s is refused',
    (name) => {
      expect(() => parseEdited((_, key) => void delete key[name])).toThrow(refused('corrupt'));
    },
  );

  test.each(['provider', 'keyId', 'wrapped', 'mac'])('a document with a wrap without %s is refused', (name) => {
    expect(() => parseEdited((_, __, each) => void delete each[name])).toThrow(refused('corrupt'));
  });

  test.each(['at', 'by'])('a document with a revocation without %s is refused', (name) => {
    expect(() => parseEdited((_, __, ___, revoked) => void delete revoked[name])).toThrow(refused('corrupt'));
  });

  test.each(['ids', 'mac'])('a document with ancestors without %s is refused', (name) => {
    expect(() => parseEdited((_, __, ___, ____, ancestors) => void delete ancestors[name])).toThrow(refused('corrupt'));
  });

  test('a document with nine ancestors, or with ancestors that are not a list of key ids, is refused (F23)', () => {
    const descended = (count: number) => () => {
      const ids = Array.from({ length: count }, (_, i) => idOf(i));
      return parseDocument(textOf(entryOf(idOf(1), { ancestors: { ids, mac: macOf(8) } })), RING);
    };
    expect(descended(8)().entries[0]?.ancestors?.ids).toHaveLength(8);
    expect(descended(9)).toThrow('corrupt: ancestors.ids is invalid');
    for (const ids of [null, {}, 'x', 5, { length: 1, 0: idOf(1) }]) {
      expect(() => parseEdited((_, __, ___, ____, it) => void (it['ids'] = ids))).toThrow(
        'corrupt: ancestors.ids is invalid',
      );
    }
    for (const id of [...badIds, 5, null]) {
      expect(() => parseEdited((_, __, ___, ____, it) => void (it['ids'] = [id]))).toThrow(
        'corrupt: key id is invalid',
      );
    }
  });

  test('a document without a list of keys is refused', () => {
    for (const keys of [undefined, null, {}, 'x', 0]) {
      const parse = () => parseEdited((each) => void (each['keys'] = keys));
      expect(parse).toThrow('corrupt: keys is not an array');
    }
    expect(parseDocument(textOf(), RING).entries).toEqual([]);
  });

  test('a document with times out of order is refused', () => {
    const order = (activates: number, sealsUntil: number, opensUntil: number) => () =>
      parseDocument(
        textOf(
          entryOf(idOf(1), {
            created: T0,
            activates: T0 + activates * 1_000,
            sealsUntil: T0 + sealsUntil * 1_000,
            opensUntil: T0 + opensUntil * 1_000,
          }),
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
      expect(order(a, s, o)).toThrow('corrupt: the times of a key are out of order');
    }
    expect(order(1, 2, 3)).not.toThrow();
    expect(order(-3, -2, -1)).not.toThrow();
  });

  test('a document with a key that lives for more than five years of 366 days is refused', () => {
    const living = (ms: number) => () =>
      parseDocument(textOf(entryOf(idOf(1), { sealsUntil: T0 + DAY, opensUntil: T0 + ms })), RING);
    expect(living(5 * 366 * DAY)).not.toThrow();
    expect(living(5 * 366 * DAY + 1_000)).toThrow('corrupt: the life of a key is too long');
  });

  test('a document with a key that becomes active more than 366 days after or before its creation is refused', () => {
    const leading = (ms: number) => () =>
      parseDocument(
        textOf(entryOf(idOf(1), { activates: T0 + ms, sealsUntil: T0 + ms + HOUR, opensUntil: T0 + ms + 2 * HOUR })),
        RING,
      );
    for (const sign of [-1, 1]) {
      expect(leading(sign * 366 * DAY)).not.toThrow();
      expect(leading(sign * (366 * DAY + 1_000))).toThrow('corrupt: a key becomes active too early or too late');
    }
  });

  test('a document in which an id occurs twice is refused (F16)', () => {
    const twice = textOf(entryOf(idOf(1)), entryOf(idOf(2)), entryOf(idOf(1), { activates: T0 }));
    expect(() => parseDocument(twice, RING)).toThrow('corrupt: two keys have the same id');
  });

  test('a document with an id that is not 12 characters in canonical form is refused (F16)', () => {
    for (const id of [...badIds, 5, null]) {
      expect(() => parseEdited((_, key) => void (key['id'] = id))).toThrow('corrupt: key id is invalid');
    }
  });

  test('a document with vouchers or certificates under an invalid key id is refused', () => {
    const mac32 = macOf(1).toString('base64url');
    for (const id of badIds) {
      expect(() => parseEdited((_, key) => void (key['vouchers'] = { [id]: mac32 }))).toThrow(
        'corrupt: key id is invalid',
      );
      expect(() => parseEdited((_, __, ___, it) => void (it['by'] = { [id]: mac32 }))).toThrow(
        'corrupt: key id is invalid',
      );
    }
  });

  test('a document with a MAC that is not 32 bytes in canonical base64url is refused', () => {
    const good = macOf(1).toString('base64url');
    const bad = [31, 33].map((length) => Buffer.alloc(length, 1).toString('base64url'));
    for (const value of [
      ...bad,
      '',
      `${good}=`,
      `${good.slice(0, -1)}F`,
      `+${good.slice(1)}`,
      null,
      5,
      {},
      undefined,
    ]) {
      expect(() => parseEdited((_, key) => void (key['vouchers'] = { [idOf(1)]: value ?? null }))).toThrow(
        'corrupt: mac is invalid',
      );
      expect(() => parseEdited((_, __, each) => void (each['mac'] = value))).toThrow('corrupt: mac is invalid');
      const certify = () => parseEdited((_, __, ___, it) => void (it['by'] = { [idOf(1)]: value ?? null }));
      expect(certify).toThrow('corrupt: mac is invalid');
      expect(() => parseEdited((_, __, ___, ____, it) => void (it['mac'] = value))).toThrow('corrupt: mac is invalid');
    }
  });

  test('a document with vouchers, ancestors, certificates or a revocation that are not objects is refused', () => {
    for (const value of [null, [], 'x', 5, true, [[idOf(1), macOf(1).toString('base64url')]]]) {
      expect(() => parseEdited((_, key) => void (key['vouchers'] = value))).toThrow(
        'corrupt: vouchers is not an object',
      );
      expect(() => parseEdited((_, key) => void (key['revoked'] = value))).toThrow('corrupt: revoked is not an object');
      expect(() => parseEdited((_, key) => void (key['ancestors'] = value))).toThrow(
        'corrupt: ancestors is not an object',
      );
      const certify = () => parseEdited((_, __, ___, it) => void (it['by'] = value));
      expect(certify).toThrow('corrupt: certificates is not an object');
    }
  });

  test('a document with nine vouchers of a key is refused (F23)', () => {
    const vouched = (count: number) => () => parseDocument(textOf(entryOf(idOf(1), { vouchers: macsOf(count) })), RING);
    expect(vouched(8)().entries[0]?.vouchers.size).toBe(8);
    expect(vouched(9)).toThrow('corrupt: too many vouchers');
  });

  test('a document with nine certificates of a revocation is refused (F23)', () => {
    const revoked = (count: number) => () =>
      parseDocument(textOf(entryOf(idOf(1), { revoked: { at: T0, by: macsOf(count) } })), RING);
    expect(revoked(8)().entries[0]?.revoked?.by.size).toBe(8);
    expect(revoked(9)).toThrow('corrupt: too many certificates');
  });

  test('a document with 65 keys is refused (F23)', () => {
    const many = (count: number) => textOf(...Array.from({ length: count }, (_, i) => entryOf(idOf(i))));
    expect(parseDocument(many(64), RING).entries).toHaveLength(64);
    expect(() => parseDocument(many(65), RING)).toThrow(refused('too-large'));
  });

  test('a document of more than 256 KiB is refused (F23)', () => {
    const many = Array.from({ length: 60 }, (_, i) =>
      entryOf(idOf(i), { wraps: [wrapOf({ keyId: 'x'.repeat(2_048) })] }),
    );
    const missing = (262_144 - textOf(...many).length) / 60;
    const padded = many.map((each) => ({
      ...each,
      wraps: [
        ...each.wraps,
        wrapOf({ keyId: 'y'.repeat(Math.floor(missing) - encodedWrap), wrapped: Buffer.alloc(1) }),
      ],
    }));
    const room = 262_144 - textOf(...padded).length;
    const exact = textOf(...padded).replace('"keyId":"y', `"keyId":"${'z'.repeat(room)}y`);
    expect(exact).toHaveLength(262_144);
    expect(() => parseDocument(exact, RING)).not.toThrow();
    expect(() => parseDocument(exact.replace('"keyId":"z', '"keyId":"zz'), RING)).toThrow(refused('too-large'));
    expect(() => parseDocument(' '.repeat(262_145), RING)).toThrow(refused('too-large'));
  });

  /** Characters of a further wrap of one byte, without its `keyId`. */
  const encodedWrap =
    textOf(entryOf(idOf(1), { wraps: [wrapOf(), wrapOf({ keyId: '', wrapped: Buffer.alloc(1) })] })).length -
    textOf(entryOf(idOf(1))).length;

  test('a document with 17 wraps of a key, or none, is refused (F23)', () => {
    const wrapped = (count: number) => () =>
      parseDocument(textOf(entryOf(idOf(1), { wraps: Array.from({ length: count }, () => wrapOf()) })), RING);
    expect(wrapped(16)().entries[0]?.wraps).toHaveLength(16);
    expect(wrapped(17)).toThrow('corrupt: wraps is invalid');
    expect(wrapped(0)).toThrow('corrupt: wraps is invalid');
  });

  test('a document with malformed wraps is refused', () => {
    for (const wraps of [undefined, null, {}, 'x', [null], [[]], ['x'], [5], [{}]]) {
      expect(() => parseEdited((_, key) => void (key['wraps'] = wraps))).toThrow(refused('corrupt'));
    }
  });

  test.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['provider', ['Local', '', 'x'.repeat(65), 'a b', 5, null], ['x'.repeat(64), 'a-0']],
    ['keyId', ['', 'x'.repeat(2_049), null, 5], ['x'.repeat(2_048), 'é']],
    [
      'wrapped',
      ['', 'AAAA=', 'AB', 'A', '+AAA', [1], null, Buffer.alloc(2_049).toString('base64url')],
      ['AA', Buffer.alloc(2_048).toString('base64url')],
    ],
    ['signature', ['', 5, 'A?', null, Buffer.alloc(2_049).toString('base64url')], ['AAAA', undefined]],
  ])('a document with an invalid %s of a wrap is refused', (name, bad, good) => {
    for (const value of bad) {
      expect(() => parseEdited((_, __, each) => void (each[name] = value))).toThrow(refused('corrupt'));
    }
    for (const value of good) {
      const text = edited((_, __, each) => void (each[name] = value)).replaceAll('é', '\\u00e9');
      expect(() => parseDocument(text, RING)).not.toThrow();
    }
  });

  test('a document with a number is refused, however it is spelled, because no member of a document is a number', () => {
    const text = textOf(entryOf(idOf(1)));
    for (const number of ['1e400', '-1e400', '0', '-0', '1e0', '5e-324']) {
      expect(() => parseDocument(text.replace('"local"', number), RING)).toThrow(refused('corrupt'));
      expect(() => parseDocument(`${text.slice(0, -1)},"claim":${number}}`, RING)).toThrow(refused('corrupt'));
    }
  });

  test('a document that is anything but one line of printable ASCII is refused', () => {
    const text = textOf(entryOf(idOf(1)));
    for (const other of [
      '',
      '\n',
      `${text}\n`,
      `\n${text}`,
      `\r${text}`,
      `\t${text}`,
      `${text}\n{"macs":{}}`,
      `${text}\0`,
    ]) {
      expect(() => parseDocument(other, RING)).toThrow('corrupt: not one line of ASCII');
    }
    for (const character of ['é', '\u007f', '\u0000', '\ud800', '\u2028']) {
      const other = text.replace('"k"', `"${character}"`);
      expect(() => parseDocument(other, RING)).toThrow('corrupt: not one line of ASCII');
    }
  });

  test('a text that is not JSON, or not an object, is refused', () => {
    for (const text of ['{', '}', ' ', `${textOf()}{}`, `{"a":${'['.repeat(100_000)}`, 'undefined', "{'a':1}"]) {
      expect(() => parseDocument(text, RING)).toThrow('corrupt: not JSON');
    }
    for (const text of ['[]', 'null', '5', '"x"', 'true']) {
      expect(() => parseDocument(text, RING)).toThrow('corrupt: document is not an object');
    }
    for (const text of ['[5]', '[null]', '[[]]']) {
      expect(() => parseDocument(textOf().replace('[]', text), RING)).toThrow('corrupt: key is not an object');
    }
  });

  test.each<readonly [string, (text: string) => string]>([
    ['white space', (text) => text.replace(',', ', ')],
    ['white space around it', (text) => ` ${text} `],
    ['a member twice, first a wrong one', (text) => text.replace('{', '{"ring":"orders",')],
    ['a member twice, the same', (text) => text.replace('{', `{"ring":"${RING}",`)],
    ['a voucher twice', (text) => text.replace('"vouchers":{', `"vouchers":{"${idOf(1_000)}":"${'A'.repeat(43)}",`)],
    ['an escape that is not needed', (text) => text.replace('"local"', '"loc\\u0061l"')],
    ['an escaped slash', (text) => text.replace('ring/1', 'ring\\/1')],
    ['an escaped name', (text) => text.replace('"keys"', '"k\\u0065ys"')],
  ])('a document spelled with %s is refused', (_, respell) => {
    const text = textOf(entryOf(idOf(1), { vouchers: macsOf(1) }));
    expect(() => parseDocument(text, RING)).not.toThrow();
    expect(respell(text)).not.toBe(text);
    expect(() => parseDocument(respell(text), RING)).toThrow('corrupt: not in canonical form');
  });
});

describe('a written document', () => {
  const [created, activates, sealsUntil, opensUntil] = [0, 1, 2, 3].map((hours) => `"2026-11-21T0${3 + hours}:00:00Z"`);
  const id = JSON.stringify(idOf(1));
  const mac32 = (n: number): string => JSON.stringify(macOf(n).toString('base64url'));

  test('a written document has the documented format, character for character (F27)', () => {
    const wraps = [
      wrapOf({ keyId: 'k/1', wrapped: Buffer.from([0xfb, 0xff, 0]), signature: Buffer.from([1, 2, 3]) }),
      wrapOf({ keyId: 'é', wrapped: Buffer.from([0]) }),
    ];
    const revoked = { at: T0, by: new Map([[idOf(1), macOf(3)]]) };
    const ancestors = { ids: [idOf(2)], mac: macOf(8) };
    const given = entryOf(idOf(1), { vouchers: new Map([[idOf(2), macOf(2)]]), ancestors, revoked, wraps });
    expect(encodeDocument(documentOf([given], CLAIM))).toBe(
      `{"format":"sealring/ring/1","ring":"payments","claim":"${CLAIM}","keys":[{"id":${id},"created":${created},` +
        `"activates":${activates},"sealsUntil":${sealsUntil},"opensUntil":${opensUntil},` +
        `"vouchers":{"${idOf(2)}":${mac32(2)}},"ancestors":{"ids":["${idOf(2)}"],"mac":${mac32(8)}},"revoked":{"at":${created},"by":{${id}:${mac32(3)}}},"wraps":[` +
        `{"provider":"local","keyId":"k/1","wrapped":"-_8A","signature":"AQID","mac":${mac32(9)}},` +
        `{"provider":"local","keyId":"\\u00e9","wrapped":"AA","mac":${mac32(9)}}]}]}`,
    );
    expect(textOf()).toBe('{"format":"sealring/ring/1","ring":"payments","keys":[]}');
  });

  test('the signature covers the ring, id, times, provider, key version and ciphertext as canonical JSON (F35)', () => {
    const signed = { provider: 'local', keyId: 'k/1', wrapped: Buffer.from([0xfb, 0xff, 0]) };
    expect(Buffer.from(signedBytes(RING, entryOf(idOf(1)), signed)).toString()).toBe(
      `{"activates":${activates},"created":${created},"id":${id},"keyId":"k/1","opensUntil":${opensUntil},` +
        `"provider":"local","ring":"payments","sealsUntil":${sealsUntil},"wrapped":"-_8A"}`,
    );
  });
});

describe('the context of a wrap', () => {
  test('the context of a wrap holds the ring, the purpose and all four times, all in canonical form (F25, F26)', () => {
    expect(wrapContext(RING, entryOf(idOf(1)))).toEqual({
      'sealring:ring': 'payments',
      'sealring:purpose': 'data-key',
      'sealring:times': '2026-11-21T03:00:00Z/2026-11-21T04:00:00Z/2026-11-21T05:00:00Z/2026-11-21T06:00:00Z',
    });
  });

  test('two wraps are the same if their provider, key version and ciphertext are equal', () => {
    const one = wrapOf();
    expect(sameWrap(one, { ...one, wrapped: Uint8Array.from(one.wrapped), mac: macOf(1) } as RingWrap)).toBe(true);
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
