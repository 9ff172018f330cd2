import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'test',
    include: ['**/*.test.ts'],
    globalSetup: ['./support/moto.ts'],
    // Thousands of simulated members start. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
