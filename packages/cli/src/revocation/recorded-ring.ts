import type { RingStore } from '@sealring/core';

/** A store's answer: a document, nothing, content that is not a ring document, or an error. */
export type Observation =
  | { readonly kind: 'document'; readonly text: string; readonly isOwn: boolean }
  | { readonly kind: 'absent' | 'foreign' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** The same store, except that `observe` is called with everything that is read and written through it. */
export function recordedRing(ring: RingStore, observe: (observation: Observation) => void): RingStore {
  return Object.freeze<RingStore>({
    kind: ring.kind,
    async read(options) {
      try {
        const stored = await ring.read(options);
        observe(stored === undefined ? { kind: 'absent' } : { kind: 'document', text: stored.document, isOwn: false });
        return stored;
      } catch (error) {
        const isForeign = error instanceof Error && 'revision' in error && error.revision !== undefined;
        observe(isForeign ? { kind: 'foreign' } : { kind: 'failed', error });
        throw error;
      }
    },
    async write(text, options) {
      const written = await ring.write(text, options);
      observe({ kind: 'document', text, isOwn: true });
      return written;
    },
    ...(ring.watch === undefined ? {} : { watch: (changed) => ring.watch?.(changed) ?? (() => undefined) }),
  });
}
