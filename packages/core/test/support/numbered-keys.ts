import type { RingEntry } from '../../src/ring/document.ts';
import { entryBy, type TestKey, testKey } from './certified.ts';

/* Keys of one ring by their number, from 1, for tests of many of them. */

const KEYS = Array.from({ length: 9 }, (_, i) => testKey(i + 1));

export const key = (n: number): TestKey => KEYS[n - 1] as TestKey;

/** The number of the key with this id; 0 for any other id. */
export const numberOf = ({ id }: { readonly id: string }): number => 1 + KEYS.findIndex((each) => each.id === id);

/** An entry of the nth key, with vouchers of others, which it names. */
export const entry = (n: number, by: readonly number[], more: Partial<RingEntry> = {}): RingEntry =>
  entryBy(key(n), by.map(key), more);
