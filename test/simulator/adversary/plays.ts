import { disagreement } from '../agreement.ts';
import { misshapen } from '../format-law.ts';
import type { SimulatedMember } from '../member.ts';
import type { Oracle } from '../oracle.ts';
import { FORBIDDEN } from '../services.ts';
import { DAY, HOUR, MINUTE, propagationSecondsOf, SECOND, type World } from '../world.ts';
import { Composer, type Document, type Entry, inOrder } from './composer.ts';
import { steal } from './loot.ts';
import { NOTHING, type Powers } from './powers.ts';

/** Attacks in fixed steps, for sequences that chance would seldom find. */
export interface Play {
  readonly powers: Powers;
  readonly perform: (stage: Stage) => Promise<void>;
}

const W: Powers = { ...NOTHING, writes: true };
const W_WRAP: Powers = { ...W, wraps: true };

/** The parts of a play. */
export class Stage {
  readonly world: World;
  readonly oracle: Oracle;
  readonly composer: Composer;
  readonly #powers: Powers;
  #held: Document | undefined;
  deliveries = 0;

  constructor(world: World, oracle: Oracle, powers: Powers) {
    this.world = world;
    this.oracle = oracle;
    this.#powers = powers;
    this.composer = new Composer(world, world.dice, oracle.thefts, powers);
    world.listen(({ kind }) => {
      // This happens before any other member reads it.
      if (kind === 'written' && this.#held !== undefined) world.timeline.after(1, () => this.#put());
    });
  }

  /** From now on an attacker writes to the store. */
  begin(): void {
    this.world.mayWrap = this.#powers.wraps;
    this.world.hostility.begin(this.world.timeline.nowMs);
  }

  end(): void {
    this.release();
    if (this.world.hostility.since !== undefined) this.world.hostility.end(this.world.timeline.nowMs);
  }

  pause(ms: number): Promise<void> {
    return this.world.timeline.pause(ms);
  }

  until(ms: number): Promise<void> {
    return this.pause(ms - this.world.timeline.nowMs);
  }

  /** Puts a document into the store once, or deletes the stored one. */
  deliver(document: Document | string | undefined): void {
    this.deliveries += 1;
    this.world.trace('the attacker writes');
    this.world.store.replace(typeof document === 'object' ? JSON.stringify(inOrder(document)) : document);
  }

  /** Puts a document into the store, and again after every write by a member. */
  hold(document: Document): void {
    this.#held = document;
    this.#put();
  }

  /** Lets members write again. */
  release(): void {
    this.#held = undefined;
  }

  #put(): void {
    if (this.#held !== undefined) this.deliver(this.#held);
  }

  /** The stored document, for editing. */
  get current(): Document {
    const { current } = this.composer;
    if (current === undefined) throw new Error('the store holds no document to begin with');
    return current;
  }

  steal(kind: NonNullable<Powers['steals']>): void {
    steal(this.world, this.oracle.thefts, kind);
  }

  member(index: number): SimulatedMember {
    const member = this.world.members[index];
    if (member === undefined) throw new RangeError(`there is no member ${index}`);
    return member;
  }

  /** Requests an operation of a healthy member, as an operator does. */
  async operate(member: SimulatedMember, wish: 'revoke' | 'revoke all' | 'rotate'): Promise<void> {
    const { codec } = member;
    const keyId = codec?.health().sealingKey ?? '';
    try {
      if (wish === 'rotate') await codec?.rotate();
      else if (wish === 'revoke') await codec?.revoke(keyId);
      else await codec?.revokeAllBefore(new Date(this.composer.wallMs));
    } catch (error) {
      this.world.trace(`${member.name}: ${wish}: ${String(error)}`);
      this.oracle.caught(error, `${member.name}: ${wish}`);
      return;
    }
    // Ids of keys that came with an unrequested rotation.
    if (wish === 'revoke') this.oracle.revoked(keyId);
    if (wish !== 'revoke all') return;
    for (const { id, state } of codec?.health().keys ?? []) if (state === 'revoked') this.oracle.revoked(id);
  }

  /** Presents a token to a member. */
  present({ codec, name }: SimulatedMember, token: string): void {
    try {
      codec?.unseal(token);
    } catch (error) {
      this.oracle.caught(error, `${name} opens`);
    }
  }

  /** Restarts a member while the store holds `seen`. Resolves when it is up, or after this time. */
  async restart(member: SimulatedMember, seen: () => void = () => undefined, atMostMs: number = MINUTE): Promise<void> {
    this.world.crash(member, SECOND);
    await this.pause(SECOND - 1);
    seen();
    const deadline = this.world.timeline.nowMs + atMostMs;
    while (!member.isUp && this.world.timeline.nowMs < deadline) await this.pause(100);
  }

  /** All members have read the store again, and have written what it lacked. */
  async settle(): Promise<void> {
    await this.pause(this.world.settleMs);
  }
}

/** Entries by `created`, newest first. */
function newestFirst({ keys }: Document): Entry[] {
  return keys.toSorted((a, b) => b.created.localeCompare(a.created));
}

/** Invalid documents, each with one defect. */
const MISSHAPEN: readonly ((document: Document, composer: Composer) => string)[] = [
  (document) => spelt({ ...document, epoch: 7 }),
  (document) => spelt(document, (entry) => ({ ...entry, note: 'x' })),
  (document) => `${spelt(document)} `,
  (document) => spelt(document).replace('"keys":', '"ring":"default","keys":'),
  (document, composer) => {
    const room = 65 - document.keys.length;
    return spelt({
      ...document,
      keys: [...document.keys, ...Array.from({ length: room }, () => lastingJunk(composer))],
    });
  },
  (document, composer) => spelt({ ...document, keys: [...document.keys, lastingJunk(composer, 6 * 366 * DAY)] }),
  (document, composer) => {
    const junk = lastingJunk(composer);
    const wraps = Array.from({ length: 17 }, () => composer.junkEntry('key/1').wraps).flat();
    return spelt({ ...document, keys: [...document.keys, { ...junk, wraps }] });
  },
];

function spelt(document: Document, each: (entry: Entry) => object = (entry) => entry): string {
  const inTheirOrder = inOrder(document) as { readonly keys: readonly Entry[] };
  return JSON.stringify({ ...inTheirOrder, keys: inTheirOrder.keys.map(each) });
}

/** An entry with a key that no one holds, and valid times. */
function lastingJunk(composer: Composer, livesMs: number = DAY): Entry {
  const time = (ms: number): string => textOf(composer.wallMs + ms);
  const times = { created: time(0), activates: time(0), sealsUntil: time(HOUR), opensUntil: time(livesMs) };
  return { ...composer.junkEntry('key/1'), ...times };
}

function textOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Maximum number of entries of a document. */
const MAX_ENTRIES = 64;

export const PLAYS: Readonly<Record<string, Play>> = Object.freeze({
  /** A copy that lacks only a revocation. */
  'a-revocation-is-lost': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      await stage.operate(stage.member(0), 'revoke');
      await stage.settle();
      stage.begin();
      const document = stage.current;
      for (const entry of document.keys) delete entry.revoked;
      stage.deliver(document);
      stage.end();
      await stage.settle();
      const different = disagreement(stage.world, stage.world.members);
      if (different !== undefined) stage.oracle.report('all members agree', different);
    },
  },
  'the-ring-is-deleted': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      stage.deliver(undefined);
      stage.end();
      await stage.settle();
      const different = disagreement(stage.world, stage.world.members);
      if (different !== undefined) stage.oracle.report('all members agree', different);
    },
  },
  'what-is-no-document': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      for (const misshape of MISSHAPEN) {
        stage.begin();
        stage.deliver(misshape(stage.current, stage.composer));
        stage.end();
        await stage.settle();
        const shape = misshapen(stage.world.store.document ?? '') ?? disagreement(stage.world, stage.world.members);
        if (shape !== undefined) stage.oracle.report('what is stored is a ring document', shape);
      }
    },
  },
  /** Keys that no one holds, with vouchers by a stolen key, while the KMS answers only for others. */
  'vouched-for-and-refused': {
    powers: { ...W, steals: 'newest' },
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      stage.steal('newest');
      stage.world.kmsFails('unavailable', 20 * MINUTE);
      const [key] = stage.oracle.thefts.stolen;
      const document = stage.current;
      for (let i = 0; i < 6; i++) {
        const entry = { ...lastingJunk(stage.composer), wraps: stage.composer.junkEntry(FORBIDDEN).wraps };
        if (key !== undefined) stage.composer.vouch(entry, key.held, true);
        document.keys.push(entry);
      }
      stage.deliver(document);
      await stage.pause(20 * MINUTE);
      stage.end();
    },
  },
  /** The stored document lacks a key whatever the members write, and every member is notified at once. */
  'a-key-is-lost-again-and-again': {
    powers: { ...W, notifies: true },
    perform: async (stage) => {
      const { world, oracle } = stage;
      await stage.until(7 * HOUR);
      world.store.pushes = true;
      stage.begin();
      const document = stage.current;
      const lacking = { ...document, keys: newestFirst(document).slice(1) };
      const before = world.members.map(({ line }) => line.calls.writes);
      const refreshMs = world.policy.refreshEverySeconds * SECOND;
      stage.hold(lacking);
      await stage.pause(4 * refreshMs);
      for (const [i, { name, line }] of world.members.entries()) {
        const writes = line.calls.writes - (before[i] ?? 0);
        if (writes > 5) oracle.report('one repairing write per R per member', `${name}: ${writes} in 4 R`);
      }
      stage.end();
    },
  },
  /** The ring is deleted while only one member can write, which is then asked for its keys after making another. */
  'tokens-of-the-ring-before': {
    powers: { ...W, presents: true },
    perform: async (stage) => {
      const { world, oracle } = stage;
      const [alone, ...others] = world.members;
      await stage.until(7 * HOUR);
      const token = others[0]?.codec?.seal(new Uint8Array(3)) ?? '';
      stage.begin();
      stage.deliver(undefined);
      stage.end();
      if (alone === undefined) return;
      world.crash(alone, 10 * SECOND);
      for (const member of others) world.cut(member, 'store', 15 * MINUTE);
      const untilMs = world.timeline.nowMs + HOUR;
      while (world.timeline.nowMs < untilMs) {
        await stage.pause(SECOND);
        stage.present(alone, token);
      }
      const different = disagreement(world, world.members);
      if (different !== undefined) oracle.report('all members agree', different);
    },
  },
  /** A ring that claims to be older, against members with an old ring, or with a recent start in it. */
  'a-ring-that-says-it-is-older': {
    powers: W_WRAP,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      await stage.operate(stage.member(0), 'revoke all');
      await stage.pause(MINUTE);
      await stage.restart(stage.member(1));
      await stage.settle();
      stage.begin();
      stage.hold(stage.composer.ownRing(stage.composer.wallMs - 20 * HOUR));
      await stage.settle();
      stage.end();
    },
  },
  /** The genuine ring and the attacker's, side by side, for a starting member. */
  'two-rings-in-one-document': {
    powers: W_WRAP,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      const own = stage.composer.ownRing(stage.composer.wallMs - MINUTE);
      const both = { ...stage.current, keys: [...stage.current.keys, ...own.keys] };
      await stage.restart(stage.member(1), () => stage.hold(both), MINUTE / 2);
      stage.release();
      await stage.operate(stage.member(0), 'rotate');
      stage.end();
    },
  },
  /** Forged wraps beside the wraps of the ring. */
  'junk-beside-the-wraps': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      const document = stage.current;
      for (const entry of document.keys) {
        for (let i = 0; i < 14; i++) entry.wraps.push(...stage.composer.junkEntry('key/1').wraps);
      }
      stage.deliver(document);
      await stage.settle();
      stage.end();
      await stage.operate(stage.member(0), 'rotate');
      const full = stage.current.keys.find(({ wraps }) => wraps.length > 1);
      if (full !== undefined) stage.oracle.report('nothing without a certificate is written', `wraps of ${full.id}`);
    },
  },
  /** A member that was deceived at its start reads the genuine ring as if it came later, and makes a key. */
  'caught-and-shown-the-true-ring': {
    powers: W_WRAP,
    perform: async (stage) => {
      const { composer } = stage;
      const caught = stage.member(1);
      await stage.until(7 * HOUR);
      stage.begin();
      const { keys } = stage.current;
      const own = composer.ownRing(composer.wallMs - MINUTE);
      await stage.restart(caught, () => stage.hold(own));
      const [key] = stage.oracle.thefts.own;
      if (key === undefined) return;
      // First with the ancestors that the genuine keys name themselves, then with the attacker's before them.
      for (const names of [false, true]) {
        const vouchedFor = structuredClone(keys);
        for (const entry of vouchedFor) composer.vouch(entry, key.held, names);
        stage.hold({ ...own, keys: [...vouchedFor, ...own.keys] });
        await stage.settle();
      }
      await stage.operate(caught, 'rotate');
      stage.end();
    },
  },
  /** A member that was deceived at its start reads the genuine ring, changes to it, and makes a key. */
  'caught-and-gone-over': {
    powers: W_WRAP,
    perform: async (stage) => {
      const caught = stage.member(1);
      await stage.until(7 * HOUR);
      stage.begin();
      await stage.restart(caught, () => stage.hold(stage.composer.ownRing(stage.composer.wallMs - MINUTE)));
      stage.release();
      await stage.settle();
      await stage.operate(caught, 'rotate');
      stage.end();
    },
  },
  /** A member starts in a ring that has a revoked key of the genuine one beside the attacker's, and makes a key. */
  'caught-beside-a-revoked-key': {
    powers: W_WRAP,
    perform: async (stage) => {
      const caught = stage.member(1);
      await stage.until(7 * HOUR);
      await stage.operate(stage.member(0), 'revoke');
      await stage.settle();
      stage.begin();
      const revoked = stage.current.keys.filter((entry) => entry.revoked !== undefined);
      for (const { id, revoked: revocation } of revoked) {
        for (const signer of Object.keys(revocation?.by ?? {})) if (signer !== id) delete revocation?.by[signer];
      }
      const own = stage.composer.ownRing(stage.composer.wallMs - MINUTE);
      await stage.restart(caught, () => stage.hold({ ...own, keys: [...revoked, ...own.keys] }));
      await stage.operate(caught, 'rotate');
      stage.end();
    },
  },
  /** A member starts where all keys have expired, and then in the attacker's ring, and makes a key. */
  'caught-after-ended-keys': {
    powers: W_WRAP,
    perform: async (stage) => {
      const { composer } = stage;
      const caught = stage.member(1);
      await stage.until(13 * HOUR);
      stage.begin();
      const ended = new Map<string, Entry>();
      for (const { stored } of stage.world.store.history) {
        const { keys } = JSON.parse(stored.document) as Document;
        for (const key of keys) if (Date.parse(key.opensUntil) < composer.wallMs) ended.set(key.id, key);
      }
      // Another member is about to make the key, so this one reads again.
      const dead = { ...stage.current, claim: composer.junk(16), keys: [...ended.values()] };
      const startedAt = stage.world.timeline.nowMs;
      const { refreshEverySeconds, backoffCapSeconds } = stage.world.policy;
      const absentMs = (refreshEverySeconds + backoffCapSeconds) * SECOND;
      const starts = stage.restart(caught, () => stage.hold(dead), absentMs + 2 * MINUTE);
      await stage.until(startedAt + absentMs + 12 * SECOND);
      stage.hold(composer.ownRing(composer.wallMs - MINUTE));
      await starts;
      await stage.operate(caught, 'rotate');
      stage.end();
    },
  },
  /**
   * A starting member reads a document in which a key is older than it really is, and revoked by a stolen key; then the
   * member writes.
   */
  'revoked-under-other-times': {
    powers: { ...W, steals: 'older' },
    perform: async (stage) => {
      const fooled = stage.member(1);
      await stage.until(7 * HOUR);
      await stage.operate(stage.member(0), 'rotate');
      await stage.operate(stage.member(0), 'rotate');
      await stage.settle();
      stage.begin();
      const document = stage.current;
      const [, forged, stolen] = newestFirst(document);
      if (forged === undefined || stolen === undefined) return;
      stage.oracle.thefts.steal(stolen.id);
      const [key] = stage.oracle.thefts.stolen;
      forged.created = `${new Date(Date.parse(stolen.created) - MINUTE).toISOString().slice(0, 19)}Z`;
      if (key !== undefined) stage.composer.certify(forged, key.held);
      await stage.restart(fooled, () => stage.hold(document));
      stage.release();
      await stage.operate(fooled, 'rotate');
      stage.end();
    },
  },
  /** Two revocations at once; the newer one makes the older one void. */
  'two-revocations-at-once': {
    powers: { ...W, steals: 'revoked' },
    perform: async (stage) => {
      const starting = stage.member(1);
      await stage.until(7 * HOUR);
      await stage.operate(stage.member(0), 'rotate');
      await stage.pause(MINUTE);
      await stage.operate(stage.member(0), 'revoke');
      // No member trusts the key any longer.
      await stage.pause(40 * MINUTE);
      stage.begin();
      stage.steal('revoked');
      const [key] = stage.oracle.thefts.stolen;
      const document = stage.current;
      for (const entry of document.keys) {
        if (key === undefined || Date.parse(entry.created) > key.created) continue;
        if (entry.id === key.id) delete entry.revoked;
        stage.composer.certify(entry, key.held);
      }
      await stage.restart(starting, () => stage.hold(document));
      stage.end();
    },
  },
  /** The entry of a revoked key from before the revocation, for a member whose clock stepped past the key's end. */
  'a-revoked-key-after-its-end': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      const id = stage.member(0).codec?.health().sealingKey;
      const old = stage.current.keys.filter((entry) => entry.id === id);
      await stage.operate(stage.member(0), 'revoke');
      const endMs = Math.max(...old.map(({ opensUntil }) => Date.parse(opensUntil))) - stage.composer.wallMs;
      await stage.pause(endMs + 2 * stage.world.policy.clockSkewSeconds * SECOND);
      stage.world.clockIsWrong(stage.member(1), 72 * HOUR, 20 * MINUTE);
      stage.begin();
      stage.deliver({ ...stage.current, keys: [...old, ...stage.current.keys.filter((entry) => entry.id !== id)] });
      await stage.pause(15 * MINUTE);
      stage.end();
    },
  },
  /** Requested rotations leave room for revocations. */
  'rotations-without-end': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      stage.deliver(stage.current);
      stage.end();
      for (let i = 0; i < 52; i++) await stage.operate(stage.member(0), 'rotate');
      const count = stage.current.keys.length;
      if (count > 48) stage.oracle.report('requested rotations stop at 48 keys', `${count} keys`);
      // Wait until the ring has room again.
      await stage.pause(14 * HOUR);
    },
  },
  /** A member starts with its clock past the end of a key, before any service gives a date, and is then corrected. */
  'a-clock-set-right-by-the-first-date': {
    powers: W,
    perform: async (stage) => {
      const { world } = stage;
      const member = stage.member(1);
      // The oldest of three keys expires within two hours, and no rotation is due.
      await stage.until(9.6 * HOUR);
      stage.begin();
      stage.deliver(stage.current);
      stage.end();
      for (const { dates } of [world.kms, world.store]) dates.aheadMs = undefined;
      world.clockIsWrong(member, 2.5 * HOUR, 30 * MINUTE);
      await stage.restart(member);
      await stage.pause(15 * MINUTE);
      for (const { dates } of [world.kms, world.store]) dates.aheadMs = 0;
      await stage.pause(15 * MINUTE);
      await stage.settle();
      const different = disagreement(world, world.members);
      if (different !== undefined) stage.oracle.report('all members agree', different);
    },
  },
  /** All read a revocation, and none a successor that any member makes, while an attacker writes to the store. */
  'a-successor-is-withheld': {
    powers: W,
    perform: async (stage) => {
      await stage.until(7 * HOUR);
      stage.begin();
      await stage.operate(stage.member(0), 'revoke all');
      const { keys } = stage.current;
      stage.hold({ ...stage.current, keys: keys.filter(({ revoked }) => revoked !== undefined) });
      await stage.pause(40 * MINUTE);
      stage.end();
      await stage.settle();
      const different = disagreement(stage.world, stage.world.members);
      if (different !== undefined) stage.oracle.report('all members agree', different);
    },
  },
  /** Dozens of revocations in a full ring: no member reads the first before the last. */
  'revocations-one-after-another-in-a-full-ring': {
    powers: W,
    perform: async (stage) => {
      const token = await filled(stage);
      for (let i = 0; i < 24; i++) await stage.operate(stage.member(0), 'revoke');
      const { refreshEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = stage.world.policy;
      await stage.pause((refreshEverySeconds + backoffCapSeconds + 4 * kmsTimeoutSeconds) * SECOND);
      await refusedByAll(stage, token);
    },
  },
  /** A member is cut off from the store until the revocation of its key has left the full ring. */
  'a-revocation-missed-in-a-full-ring': {
    powers: W,
    perform: async (stage) => {
      const { world } = stage;
      const token = await filled(stage);
      const { refreshEverySeconds, clockSkewSeconds } = world.policy;
      const readByAllMs = (2 * refreshEverySeconds + clockSkewSeconds + 1) * SECOND;
      world.cut(stage.member(1), 'store', 4 * readByAllMs);
      for (let i = 0; i < 14; i++) await stage.operate(stage.member(0), 'revoke');
      for (let i = 0; i < 3; i++) {
        await stage.pause(readByAllMs);
        for (let j = 0; j < 3; j++) await stage.operate(stage.member(0), 'revoke');
      }
      await stage.pause(readByAllMs);
      await stage.settle();
      await stage.settle();
      await refusedByAll(stage, token);
    },
  },
  /** The holder of an expired key fills a document with certified revocations, in place of a genuine one. */
  'an-expired-key-fills-the-ring': {
    powers: { ...W, steals: 'ended' },
    perform: async (stage) => {
      const { oracle, composer } = stage;
      await stage.until(16 * HOUR);
      const revoked = stage.member(0).codec?.health().sealingKey ?? '';
      await stage.operate(stage.member(0), 'revoke');
      await stage.settle();
      // It knows the revocation, but not the expired key.
      await stage.restart(stage.member(1));
      stage.begin();
      stage.steal('ended');
      const [key] = oracle.thefts.stolen;
      if (key === undefined) throw new Error('no key has expired');
      const document = stage.current;
      const kept = document.keys.filter(({ id }) => id !== revoked);
      const junk = Array.from({ length: MAX_ENTRIES - kept.length }, (_, i) => {
        const entry = { ...lastingJunk(composer), created: textOf(key.created - SECOND * (i + 1)) };
        composer.certify(entry, key.held);
        return entry;
      });
      document.keys = [...kept, ...junk];
      stage.deliver(document);
      stage.end();
      await stage.settle();
      if (!stage.current.keys.some(({ id }) => id === revoked)) {
        oracle.report('a genuine revocation stays', `${revoked} has left the document`);
      }
    },
  },
});

/** A full ring whose keys are all active, and a token of the key that is revoked first. */
async function filled(stage: Stage): Promise<string> {
  const { world } = stage;
  await stage.until(7 * HOUR);
  for (let i = 0; i < 48; i++) await stage.operate(stage.member(0), 'rotate');
  await stage.pause((propagationSecondsOf(world.policy) + world.policy.clockSkewSeconds) * SECOND);
  stage.begin();
  stage.deliver(stage.current);
  stage.end();
  return stage.member(0).codec?.seal(new Uint8Array(3)) ?? '';
}

/** No member unseals it, every starting member reads one ring, and the ring has room again at the end. */
async function refusedByAll(stage: Stage, token: string): Promise<void> {
  const { world, oracle } = stage;
  for (const { codec, name } of world.members) {
    try {
      codec?.unseal(token);
    } catch {
      continue;
    }
    oracle.report('a revoked key unseals nothing', `${name} opens a token of the key that was revoked first`);
  }
  for (let i = 0; i < 5; i++) {
    const starter = stage.member(i);
    await stage.pause(10 * MINUTE);
    await stage.restart(starter, undefined, 5 * MINUTE);
    if (!starter.isUp) oracle.report('all members agree', `${starter.name} does not start`);
  }
  await stage.pause(12 * HOUR);
}
