import { randomBytes } from 'node:crypto';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import { ancestorsMacOf, certificateOf, voucherOf, wrapMacOf } from '../../src/ring/certificates.ts';
import { type RingEntry, type RingWrap, wrapContext } from '../../src/ring/document.ts';
import type { KeyTimes } from '../../src/ring/schedule.ts';

/** An attacker who composes ring documents, with stolen data keys and with their own. */
export class Thief {
  readonly ring: string;
  /** Ids of the keys that the thief made. */
  readonly made: string[] = [];
  readonly #keys = new Map<string, Uint8Array>();

  constructor(ring = 'default') {
    this.ring = ring;
  }

  /** The same key wrapper; the thief gets every data key that it unwraps. */
  spy<T extends KeyWrapper>(inner: T): T {
    return {
      ...inner,
      unwrap: async (wrapped, options) => {
        const dataKey = await inner.unwrap(wrapped, options);
        this.steal(dataKey);
        return dataKey;
      },
    };
  }

  steal(dataKey: Uint8Array): string {
    const { id } = new DataKey(dataKey, this.ring);
    this.#keys.set(id, Uint8Array.from(dataKey));
    return id;
  }

  /** The keys whose data keys the thief has. */
  get stolen(): readonly string[] {
    return [...this.#keys.keys()];
  }

  forget(id: string): void {
    this.#keys.delete(id);
  }

  key(id: string): DataKey {
    const dataKey = this.#keys.get(id);
    if (dataKey === undefined) throw new Error(`no data key of ${id} was stolen`);
    return new DataKey(dataKey, this.ring);
  }

  /** An entry with vouchers by `signers`, and with its wraps certified if the thief has its key. */
  certified(entry: RingEntry, signers: readonly string[] = []): RingEntry {
    const own = this.#keys.has(entry.id) ? this.key(entry.id) : undefined;
    return {
      ...entry,
      vouchers: new Map([
        ...entry.vouchers,
        ...signers.map((id) => [id, voucherOf(this.ring, entry, this.key(id).authenticator)] as const),
      ]),
      wraps:
        own === undefined
          ? entry.wraps
          : entry.wraps.map((wrap) => ({ ...wrap, mac: wrapMacOf(this.ring, wrap, own.authenticator) })),
    };
  }

  /** An entry of a data key that the thief made: wrapped by the KMS if they may, otherwise with bytes that are not a wrap. */
  async newEntry(
    given: KeyTimes,
    options: { vouchedBy?: readonly string[]; keyWrapper?: KeyWrapper } = {},
  ): Promise<RingEntry> {
    const times = timesOf(given);
    const dataKey = randomBytes(32);
    const id = this.steal(dataKey);
    this.made.push(id);
    const made = await options.keyWrapper?.wrap(Uint8Array.from(dataKey), { context: wrapContext(this.ring, times) });
    const wrap = made ?? { provider: 'local', keyId: 'local:0000000000000000', wrapped: randomBytes(60) };
    const entry = { id, ...times, vouchers: new Map(), revoked: undefined, wraps: [{ ...wrap, mac: randomBytes(32) }] };
    const vouched = this.certified(entry, options.vouchedBy);
    return options.vouchedBy === undefined ? vouched : this.withAncestors(vouched, options.vouchedBy.slice(0, 8));
  }

  /** The entry of a stolen key, which names others as its ancestors. */
  withAncestors(entry: RingEntry, ids: readonly string[]): RingEntry {
    return { ...entry, ancestors: { ids, mac: ancestorsMacOf(this.ring, ids, this.key(entry.id).authenticator) } };
  }

  /** The entry as revoked, with a certificate of each of `by`. */
  revoked(entry: RingEntry, by: readonly string[], at: number = entry.created): RingEntry {
    const certificates = by.map(
      (id) => [id, certificateOf(this.ring, entry.id, at, this.key(id).authenticator)] as const,
    );
    return { ...entry, revoked: { at, by: new Map(certificates) } };
  }

  /** Wraps that cannot be unwrapped, certified by the key of the entry. */
  junkWraps(id: string, count: number, bytes = 60): RingWrap[] {
    return Array.from({ length: count }, (_, i) => {
      const wrap = { provider: 'local', keyId: `local:junk${i}`, wrapped: randomBytes(bytes) };
      return {
        ...wrap,
        mac: this.#keys.has(id) ? wrapMacOf(this.ring, wrap, this.key(id).authenticator) : randomBytes(32),
      };
    });
  }
}

/** Whole seconds: the format cannot write any other time. */
export function timesOf({ created, activates, sealsUntil, opensUntil }: KeyTimes): KeyTimes {
  const whole = (ms: number): number => Math.floor(ms / 1_000) * 1_000;
  return {
    created: whole(created),
    activates: whole(activates),
    sealsUntil: whole(sealsUntil),
    opensUntil: whole(opensUntil),
  };
}
