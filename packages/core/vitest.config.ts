import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'core',
    include: ['test/**/*.test.ts'],
    // Many starts here wait. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    setupFiles: ['../../test/support/fixed-seed.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
