import { randomFillSync } from 'node:crypto';

const DRAWS = 256;

/** Draws `bytes` random bytes at a time out of many drawn at once: a draw alone costs more than all else of a claim. */
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
