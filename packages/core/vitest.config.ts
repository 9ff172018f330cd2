import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'core',
    include: ['test/**/*.test.ts'],
    // Starts that wait are many here. The warnings are emitted all the same, and not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    setupFiles: ['../../test/support/fixed-seed.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
