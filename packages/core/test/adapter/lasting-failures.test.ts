import { expect, test } from 'vitest';
import { patienceWith } from '../../src/adapter/lasting-failures.ts';

test('a start gives up at once, after 10 s or at its timeout, depending on the kind of failure', () => {
  const patience = (...codes: readonly (string | undefined)[]) => new Set(codes.map(patienceWith));
  expect(patience('ENOENT', '42P01', 'RegionMissing', 'HOSTNAME_MISMATCH')).toEqual(new Set(['none']));
  expect(patience('ENOTFOUND', 'ExpiredToken', 'CredentialUnavailableError')).toEqual(new Set(['short']));
  expect(patience(undefined, '', 'ECONNRESET')).toEqual(new Set(['long']));
});
