/**
 * Milliseconds. A test that takes longer has hung. The limits are generous, because machines are slow and other files
 * run on the same cores.
 */
export const limits = {
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 60_000 } },
};
