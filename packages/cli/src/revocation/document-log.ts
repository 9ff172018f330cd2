import type { RingDocument, RingEntry } from '@sealring/core/ring';
import { readDocument } from '../ring/document.ts';
import type { Observation } from './recorded-ring.ts';

/** The documents that a command has read and written, to compare them with what its codec knows. */
export class DocumentLog {
  readonly #listed = new Map<string, RingEntry>();
  #read: RingDocument | undefined;
  #written: RingDocument | undefined;

  /** Called with everything that is read and written. */
  readonly observe = (observation: Observation): void => {
    const document = observation.kind === 'document' ? readDocument(observation.text) : undefined;
    if (document === undefined || observation.kind !== 'document') return;
    if (observation.isOwn) this.#written = document;
    else {
      this.#read = document;
      for (const entry of document.entries) if (!this.#listed.has(entry.id)) this.#listed.set(entry.id, entry);
    }
  };

  /** Every entry that was read so far, as it was read first. */
  get listed(): readonly RingEntry[] {
    return [...this.#listed.values()];
  }

  /**
   * The keys that certify a revocation in the last document that was written, or else read. Empty if that document does
   * not list the key as revoked.
   */
  certifiersOf(id: string): readonly RingEntry[] {
    const entries = (this.#written ?? this.#read)?.entries ?? [];
    const by = entries.find((entry) => entry.id === id)?.revoked?.by;
    return by === undefined ? [] : entries.filter((entry) => by.has(entry.id));
  }
}
