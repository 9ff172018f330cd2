// @boundaries-ignore an adversary forges documents with the core's own code
import type { DataKey } from '../../../packages/core/src/keys/data-key.ts';
// @boundaries-ignore an adversary forges documents with the core's own code
import { ancestorsMacOf, certificateOf, voucherOf, wrapMacOf } from '../../../packages/core/src/ring/certificates.ts';
// @boundaries-ignore an adversary forges documents with the core's own code
import { formatTime, wrapContext } from '../../../packages/core/src/ring/document.ts';
import type { Dice } from '../dice.ts';
import { FORBIDDEN } from '../services.ts';
import { RING, type StolenKey, type Thefts } from '../thefts.ts';
import { EPOCH_MS } from '../timeline.ts';
import { DAY, HOUR, MINUTE, SECOND, type World } from '../world.ts';
import type { Powers } from './powers.ts';

/** An entry as parsed JSON: an attacker who writes to the store ignores the types. */
export interface Entry {
  id: string;
  created: string;
  activates: string;
  sealsUntil: string;
  opensUntil: string;
  vouchers: Record<string, string>;
  ancestors?: { ids: readonly string[]; mac: string };
  revoked?: { at: string; by: Record<string, string> };
  wraps: { provider: string; keyId: string; wrapped: string; signature?: string; mac: string }[];
}

export type Document = { keys: Entry[]; claim?: string } & Record<string, unknown>;

type Times = Pick<Entry, 'created' | 'activates' | 'sealsUntil' | 'opensUntil'>;

/** An edit of a document before its delivery; a document to which it does not apply is left unchanged. */
type Edit = (document: Document, composer: Composer) => void;

/**
 * Makes hostile documents from everything that was ever stored, the attacker's keys, edited fields and junk. A random
 * search: the same seed gives the same documents in the same world.
 */
export class Composer {
  readonly world: World;
  readonly dice: Dice;
  readonly thefts: Thefts;
  readonly powers: Powers;

  constructor(world: World, dice: Dice, thefts: Thefts, powers: Powers) {
    this.world = world;
    this.dice = dice;
    this.thefts = thefts;
    this.powers = powers;
  }

  /** The next document; undefined to delete what is stored. */
  compose(): string | undefined {
    const { dice } = this;
    if (dice.chance(0.08)) return undefined;
    if (dice.chance(0.04))
      return dice.pick(['', '{}', '[]', 'null', '{"keys":[]}', 'x'.repeat(300_000), '{"keys":[{"id":1}]}']);
    const document = this.#base();
    if (document === undefined) return undefined;
    const edits = this.thefts.all.length === 0 ? EDITS : [...EDITS, ...KEYED_EDITS, ...KEYED_EDITS];
    const allowed = this.powers.wraps ? [...edits, ...WRAPPING_EDITS, ...WRAPPING_EDITS, ...WRAPPING_EDITS] : edits;
    const count = dice.pick([0, 1, 1, 1, 2, 2, 3, 5]);
    for (let i = 0; i < count; i++) dice.pick(allowed)(document, this);
    // In another order it would be refused before any check of its content.
    const text = JSON.stringify(dice.chance(0.95) ? inOrder(document) : document);
    return dice.chance(0.02) ? `${text} ` : text;
  }

  /** A document that was stored before, usually a recent one. */
  old(): Document | undefined {
    const { history } = this.world.store;
    if (history.length === 0) return undefined;
    const back = this.dice.chance(0.6)
      ? Math.floor(this.dice.latencyMs(6))
      : Math.floor(this.dice.uniform() * history.length);
    const text = history[Math.max(0, history.length - 1 - back)]?.stored.document ?? '';
    return parsed(text);
  }

  #base(): Document | undefined {
    const { current } = this;
    if (this.dice.chance(0.4) && current !== undefined) return current;
    return this.old() ?? current;
  }

  get wallMs(): number {
    return EPOCH_MS + this.world.timeline.nowMs;
  }

  /** The stored document. */
  get current(): Document | undefined {
    return parsed(this.world.store.document ?? '');
  }

  /** Base64url of random bytes. */
  junk(bytes: number): string {
    const filled = Buffer.alloc(bytes);
    this.dice.source(filled);
    return filled.toString('base64url');
  }

  anyEntry(document: Document): Entry | undefined {
    return document.keys.length === 0 ? undefined : this.dice.pick(document.keys);
  }

  anyKey(): StolenKey | undefined {
    return this.thefts.all.length === 0 ? undefined : this.dice.pick(this.thefts.all);
  }

  /** Times like those of a key in use, exactly or nearly. */
  times(): Times {
    const { dice } = this;
    const created =
      this.wallMs + dice.pick([-20 * DAY, -2 * DAY, -HOUR, -MINUTE, 0, 5 * MINUTE, 10 * MINUTE, DAY, 300 * DAY]);
    const activates =
      created + dice.pick([-300 * SECOND, -600 * SECOND, 0, 960 * SECOND, 4_800 * SECOND, DAY, 360 * DAY]);
    const sealsUntil = activates + dice.pick([HOUR, 2 * DAY, 365 * DAY]);
    const opensUntil = sealsUntil + dice.pick([MINUTE, 80 * MINUTE, 365 * DAY, 3 * 365 * DAY]);
    const spelt = (ms: number): string => formatTime(Math.floor(ms / SECOND) * SECOND);
    return {
      created: spelt(created),
      activates: spelt(activates),
      sealsUntil: spelt(sealsUntil),
      opensUntil: spelt(opensUntil),
    };
  }

  /** A ring of one key of the attacker's, which claims to be the first. */
  ownRing(createdMs: number): Document {
    const key = this.thefts.make(this.#newDataKey(), createdMs);
    const spelt = (ms: number): string => formatTime(Math.floor(ms / SECOND) * SECOND);
    const entry = this.wrappedEntry(key, {
      created: spelt(createdMs),
      activates: spelt(createdMs - 600 * SECOND),
      sealsUntil: spelt(this.wallMs + 5 * HOUR),
      opensUntil: spelt(this.wallMs + 7 * HOUR),
    });
    entry.ancestors = { ids: [], mac: ancestorsMacOf(RING, [], key.held.authenticator).toString('base64url') };
    return { format: 'sealring/ring/1', ring: RING, keys: [entry] };
  }

  #newDataKey(): Uint8Array {
    const dataKey = new Uint8Array(32);
    this.dice.source(dataKey);
    return dataKey;
  }

  /** Adds a voucher. Chance decides whether the entry also names the signer as its ancestor, unless the caller does. */
  vouch(entry: Entry, signer: DataKey, names?: boolean): void {
    const times = {
      created: Date.parse(entry.created),
      activates: Date.parse(entry.activates),
      sealsUntil: Date.parse(entry.sealsUntil),
      opensUntil: Date.parse(entry.opensUntil),
    };
    entry.vouchers[signer.id] = voucherOf(RING, { id: entry.id, ...times }, signer.authenticator).toString('base64url');
    // A key names its own ancestors: for another's key, the attacker can only copy published names.
    const own = this.thefts.all.find(({ id }) => id === entry.id);
    if (own === undefined && !(names ?? this.dice.chance(0.5))) return;
    const ids = [signer.id, ...(entry.ancestors?.ids ?? [])].slice(0, 8);
    const mac =
      own === undefined ? this.junk(32) : ancestorsMacOf(RING, ids, own.held.authenticator).toString('base64url');
    entry.ancestors = { ids, mac };
  }

  certify(entry: Entry, signer: DataKey): void {
    const at = entry.revoked?.at ?? formatTime(Math.floor(this.wallMs / SECOND) * SECOND);
    const mac = certificateOf(RING, entry.id, Date.parse(at), signer.authenticator).toString('base64url');
    entry.revoked = { at, by: { ...entry.revoked?.by, [signer.id]: mac } };
  }

  junkEntry(keyId: string = this.dice.pick(['key/1', FORBIDDEN])): Entry {
    const wrap = { provider: 'simulated', keyId, wrapped: this.junk(12), mac: this.junk(32) };
    return { id: this.junk(9), ...this.times(), vouchers: {}, wraps: [wrap] };
  }

  /** An entry that unwraps: with the attacker's own key, or with a stolen one under other times. */
  wrappedEntry(key: StolenKey, given: Times = this.times()): Entry {
    const entry: Entry = { id: key.id, ...given, vouchers: {}, wraps: [] };
    const times = {
      created: Date.parse(entry.created),
      activates: Date.parse(entry.activates),
      sealsUntil: Date.parse(entry.sealsUntil),
      opensUntil: Date.parse(entry.opensUntil),
    };
    const wrap = this.world.kms.keep(Uint8Array.from(key.dataKey), wrapContext(RING, times));
    const mac = wrapMacOf(RING, wrap, key.held.authenticator).toString('base64url');
    entry.wraps = [
      { provider: wrap.provider, keyId: wrap.keyId, wrapped: Buffer.from(wrap.wrapped).toString('base64url'), mac },
    ];
    return entry;
  }
}

function parsed(text: string): Document | undefined {
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document !== 'object' || document === null || !('keys' in document)) return undefined;
    const { keys } = document;
    if (!Array.isArray(keys) || keys.some((key) => typeof key?.vouchers !== 'object')) return undefined;
    return document as Document;
  } catch {
    return undefined;
  }
}

/** The document with its members in the order of the format; unknown members come last. */
export function inOrder({ format, ring, claim, keys, ...unknown }: Document): object {
  return {
    format,
    ring,
    ...(claim === undefined ? {} : { claim }),
    keys: keys.map(({ id, created, activates, sealsUntil, opensUntil, vouchers, revoked, wraps, ...rest }) => ({
      id,
      created,
      activates,
      sealsUntil,
      opensUntil,
      vouchers,
      ...(revoked === undefined ? {} : { revoked: { at: revoked.at, by: revoked.by } }),
      wraps: wraps.map(({ provider, keyId, wrapped, signature, mac }) => ({
        provider,
        keyId,
        wrapped,
        ...(signature === undefined ? {} : { signature }),
        mac,
      })),
      ...rest,
    })),
    ...unknown,
  };
}

const isEnded = (entry: Entry, wallMs: number): boolean => Date.parse(entry.opensUntil) < wallMs;

/** Edits that need no key. */
const EDITS: readonly Edit[] = [
  // Entries are added and removed.
  (document, { dice }) => void (document.keys = document.keys.filter(() => dice.chance(0.5))),
  (document, composer) => void (document.keys = document.keys.filter((entry) => isEnded(entry, composer.wallMs))),
  (document, composer) => void (document.keys = document.keys.filter((entry) => !isEnded(entry, composer.wallMs))),
  (document, composer) => void (document.keys = document.keys.filter((entry) => entry === composer.anyEntry(document))),
  (document) => void (document.keys = document.keys.filter((entry) => entry.revoked === undefined)),
  (document) => void (document.keys = document.keys.filter((entry) => entry.revoked !== undefined)),
  (document) => void (document.keys = newestFirst(document).slice(1)),
  (document) => void (document.keys = newestFirst(document).slice(0, 1)),
  (document) => void (document.keys = document.keys.toReversed()),
  (document, composer) => {
    const known = new Set(document.keys.map(({ id }) => id));
    document.keys.push(...(composer.old()?.keys ?? []).filter(({ id }) => !known.has(id)));
  },
  // Revocations are lost, forged, and moved.
  (document) => {
    for (const entry of document.keys) delete entry.revoked;
  },
  (document, composer) => {
    const entry = composer.anyEntry(document);
    if (entry !== undefined) delete entry.revoked;
  },
  (document, composer) => {
    const by = Object.fromEntries(document.keys.map(({ id }) => [id, composer.junk(32)]).slice(0, 8));
    for (const entry of document.keys) entry.revoked ??= { at: entry.created, by };
  },
  (document, composer) => {
    const revoked = document.keys.find((entry) => entry.revoked !== undefined)?.revoked;
    if (revoked !== undefined) for (const entry of document.keys) entry.revoked ??= structuredClone(revoked);
    else
      for (const entry of document.keys) entry.revoked = { at: entry.created, by: { [entry.id]: composer.junk(32) } };
  },
  (document) => {
    for (const { revoked } of document.keys) if (revoked !== undefined) revoked.at = '2020-01-01T00:00:00Z';
  },
  (document) => {
    for (const { revoked } of document.keys) if (revoked !== undefined) revoked.by = {};
  },
  // Times.
  (document, composer) => {
    for (const entry of document.keys) if (composer.dice.chance(0.5)) Object.assign(entry, composer.times());
  },
  (document) => {
    for (const entry of document.keys) entry.opensUntil = later(entry.opensUntil, 365 * DAY);
  },
  (document) => {
    for (const entry of document.keys) entry.created = later(entry.created, 30 * DAY);
  },
  (document) => {
    for (const entry of document.keys) entry.activates = later(entry.activates, -2 * HOUR);
  },
  // Vouchers and wraps.
  (document) => {
    for (const entry of document.keys) entry.vouchers = {};
  },
  (document, composer) => {
    for (const entry of document.keys) {
      entry.vouchers = Object.fromEntries(Array.from({ length: 8 }, () => [composer.junk(9), composer.junk(32)]));
    }
  },
  (document, composer) => {
    const [one, other] = [composer.anyEntry(document), composer.anyEntry(document)];
    if (one !== undefined && other !== undefined) [one.wraps, other.wraps] = [other.wraps, one.wraps];
  },
  (document, composer) => {
    for (const entry of document.keys) {
      const count = composer.dice.pick([1, 15, 16]);
      const wraps = Array.from({ length: count }, () => ({
        provider: 'simulated',
        keyId: composer.dice.pick(['key/1', FORBIDDEN]),
        wrapped: composer.junk(12),
        mac: composer.junk(32),
      }));
      entry.wraps = composer.dice.chance(0.5)
        ? wraps
        : [...wraps, ...entry.wraps].slice(0, composer.dice.pick([16, 17]));
    }
  },
  (document, composer) => {
    for (const entry of document.keys) for (const wrap of entry.wraps) wrap.mac = composer.junk(32);
  },
  // Entries with keys that no one holds.
  (document, composer) => {
    const room = composer.dice.pick([1, 4, 64 - document.keys.length, 65]);
    document.keys.push(...Array.from({ length: Math.max(0, room) }, () => composer.junkEntry()));
  },
  (document, composer) => {
    const entry = composer.anyEntry(document);
    if (entry !== undefined) document.keys.push({ ...structuredClone(entry), id: composer.junk(9) });
  },
  (document, composer) => {
    const entry = composer.anyEntry(document);
    if (entry !== undefined) document.keys.push(structuredClone(entry));
  },
  // The document itself.
  (document) => void (document['ring'] = 'another'),
  (document) => void (document['epoch'] = Number.MAX_SAFE_INTEGER),
  (document, composer) => void (document['claim'] = composer.junk(16)),
];

/** Edits that need a data key. */
const KEYED_EDITS: readonly Edit[] = [
  // Revocations that the key may make, and others.
  (document, composer) => {
    const key = composer.anyKey();
    if (key !== undefined) for (const entry of document.keys) composer.certify(entry, key.held);
  },
  (document, composer) => {
    const [key, entry] = [composer.anyKey(), composer.anyEntry(document)];
    if (key !== undefined && entry !== undefined) composer.certify(entry, key.held);
  },
  (document, composer) => {
    const key = composer.anyKey();
    if (key === undefined) return;
    for (const entry of document.keys) if (entry.id !== key.id) composer.certify(entry, key.held);
    const own = document.keys.find(({ id }) => id === key.id);
    if (own !== undefined) delete own.revoked;
  },
  // Vouchers for junk, and for keys that the ring has.
  (document, composer) => {
    const key = composer.anyKey();
    if (key === undefined) return;
    const room = composer.dice.pick([1, 5, Math.max(0, 64 - document.keys.length)]);
    for (let i = 0; i < room; i++) {
      const entry = composer.junkEntry();
      composer.vouch(entry, key.held);
      if (composer.dice.chance(0.3)) composer.certify(entry, key.held);
      document.keys.push(entry);
    }
  },
  (document, composer) => {
    const key = composer.anyKey();
    if (key !== undefined) for (const entry of document.keys) composer.vouch(entry, key.held);
  },
  (document, composer) => {
    const key = composer.anyKey();
    if (key === undefined) return;
    for (const entry of document.keys) {
      if (composer.dice.chance(0.5)) continue;
      Object.assign(entry, composer.times());
      composer.vouch(entry, key.held);
    }
  },
  // The only remaining key, beside a wrap of a genuine MAC.
  (document, composer) => {
    const key = composer.anyKey();
    document.keys = document.keys.filter(({ id }) => id === key?.id);
    for (const { revoked: _, ...entry } of document.keys.splice(0)) document.keys.push(entry);
  },
  (document, composer) => {
    const key = composer.anyKey();
    const entry = document.keys.find(({ id }) => id === key?.id);
    if (key === undefined || entry === undefined) return;
    entry.wraps = Array.from({ length: composer.dice.pick([1, 15]) }, () => {
      const wrapped = composer.junk(12);
      const wrap = { provider: 'simulated', keyId: 'key/1', wrapped: Buffer.from(wrapped, 'base64url') };
      return { ...wrap, wrapped, mac: wrapMacOf(RING, wrap, key.held.authenticator).toString('base64url') };
    });
  },
];

/** Edits that need permission to wrap. */
const WRAPPING_EDITS: readonly Edit[] = [
  (document, composer) => void document.keys.push(composer.wrappedEntry(ownKey(composer))),
  // A consistent ring of the attacker's own.
  (document, composer) => {
    const first = ownKey(composer);
    const second = composer.wrappedEntry(ownKey(composer));
    composer.vouch(second, first.held);
    document.keys = [composer.wrappedEntry(first), second];
  },
  (document, composer) => {
    const entry = composer.wrappedEntry(ownKey(composer));
    const key = composer.anyKey();
    if (key !== undefined) composer.vouch(entry, key.held);
    document.keys.push(entry);
  },
  // An attacker's key that claims to succeed the keys of the ring, with any vouchers.
  (document, composer) => {
    const key = ownKey(composer);
    const entry = composer.wrappedEntry(key);
    const ids = newestFirst(document)
      .map(({ id }) => id)
      .slice(0, 8);
    entry.ancestors = { ids, mac: ancestorsMacOf(RING, ids, key.held.authenticator).toString('base64url') };
    for (const other of composer.thefts.all) if (composer.dice.chance(0.5)) composer.vouch(entry, other.held);
    document.keys.push(entry);
  },
  // An attacker's key that claims to be newer than all others, and the claim that all others are revoked.
  (document, composer) => {
    const key = ownKey(composer);
    for (const entry of document.keys) composer.certify(entry, key.held);
    document.keys.push(composer.wrappedEntry(key));
  },
];

function ownKey(composer: Composer): StolenKey {
  const { thefts, dice } = composer;
  if (thefts.own.length > 0 && dice.chance(0.5)) return dice.pick(thefts.own);
  const dataKey = new Uint8Array(32);
  dice.source(dataKey);
  return thefts.make(dataKey, composer.wallMs);
}

function newestFirst(document: Document): Entry[] {
  return document.keys.toSorted((a, b) => b.created.localeCompare(a.created));
}

function later(time: string, ms: number): string {
  return formatTime(Date.parse(time) + ms);
}
