/** Number of seeds of a search: `SEALRING_SEEDS`, or the usual number if it is not set. @throws {RangeError} */
export function seedCount(usual: number): number {
  const text = process.env['SEALRING_SEEDS'] ?? '';
  const count = text === '' ? usual : Number(text);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new RangeError(`SEALRING_SEEDS must be a whole number from 1, got ${JSON.stringify(text)}`);
}
