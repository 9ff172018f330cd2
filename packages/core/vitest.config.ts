import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'core',
    include: ['test/**/*.test.ts'],
    // Many starts here wait. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    setupFiles: ['../../test/support/fixed-seed.ts'],
    // What takes longer has hung: machines are slow, and other files run on the same cores.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
