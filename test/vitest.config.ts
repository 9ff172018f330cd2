import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'test',
    include: ['**/*.test.ts'],
    globalSetup: ['./support/moto.ts'],
    // Simulated members start by the thousand. The warnings are emitted all the same, and not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
