import { boundedNumber } from './option-checks.ts';

/** Characters; what no codec of ours would open, so it is refused unread. */
export const MAX_TOKEN_LENGTH = 262_144;
const DEFAULT_MAX_TOKEN_LENGTH = 65_536;

/** The longest token that a policy lets out. @throws {TypeError | RangeError} */
export function readMaxTokenLength(owner: string, value: unknown): number {
  const given = value === undefined ? DEFAULT_MAX_TOKEN_LENGTH : value;
  const length = boundedNumber(owner, 'maxTokenLength', given, 256, MAX_TOKEN_LENGTH);
  if (!Number.isInteger(length)) throw new RangeError(`${owner}: maxTokenLength must be an integer, got ${length}`);
  return length;
}
