import { timingSafeEqual } from 'node:crypto';

/** Whether two texts are equal; in constant time for texts of one length. */
export function equalText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
