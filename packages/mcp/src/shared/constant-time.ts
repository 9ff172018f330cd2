import { timingSafeEqual } from 'node:crypto';

/** Whether two strings are equal. Takes constant time for strings of the same length. */
export function equalText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
