import { randomFillSync } from 'node:crypto';

const DRAWS = 256;

/**
 * Returns a function that returns `bytes` random bytes per call. The bytes come from a pool, because a call to the
 * random number generator would cost more than the rest of the work for a claim.
 */
export function saltSource(bytes: number): () => Uint8Array {
  const pool = Buffer.alloc(bytes * DRAWS);
  let next = pool.length;
  return () => {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    next += bytes;
    return Uint8Array.prototype.slice.call(pool, next - bytes, next);
  };
}
