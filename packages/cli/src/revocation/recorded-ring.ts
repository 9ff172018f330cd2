import type { RingStore } from '@sealring/core';

/** What was seen of a store: a document, nothing, what is no document, or that it does not answer. */
export type Sight =
  | { readonly kind: 'document'; readonly text: string; readonly isOwn: boolean }
  | { readonly kind: 'absent' | 'foreign' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** The same store, with `see` told of whatever is read and written through it. */
export function recordedRing(ring: RingStore, see: (sight: Sight) => void): RingStore {
  return Object.freeze<RingStore>({
    kind: ring.kind,
    async read(options) {
      try {
        const stored = await ring.read(options);
        see(stored === undefined ? { kind: 'absent' } : { kind: 'document', text: stored.document, isOwn: false });
        return stored;
      } catch (error) {
        const isForeign = error instanceof Error && 'revision' in error && error.revision !== undefined;
        see(isForeign ? { kind: 'foreign' } : { kind: 'failed', error });
        throw error;
      }
    },
    async write(text, options) {
      const written = await ring.write(text, options);
      see({ kind: 'document', text, isOwn: true });
      return written;
    },
    ...(ring.watch === undefined ? {} : { watch: (changed) => ring.watch?.(changed) ?? (() => undefined) }),
  });
}
