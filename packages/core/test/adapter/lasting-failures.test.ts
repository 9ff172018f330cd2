import { expect, test } from 'vitest';
import { patienceWith } from '../../src/adapter/lasting-failures.ts';

test('a start waits 10 s for a failure that a new machine may cause, not at all for one that needs an operator, and else to its end', () => {
  const patience = (...codes: readonly (string | undefined)[]) => new Set(codes.map(patienceWith));
  expect(patience('ENOENT', '42P01', 'RegionMissing', 'HOSTNAME_MISMATCH')).toEqual(new Set(['none']));
  expect(patience('ENOTFOUND', 'ExpiredToken', 'CredentialUnavailableError')).toEqual(new Set(['short']));
  expect(patience(undefined, '', 'ECONNRESET')).toEqual(new Set(['long']));
});
