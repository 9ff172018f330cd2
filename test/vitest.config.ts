import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'test',
    include: ['**/*.test.ts'],
    globalSetup: ['./support/moto.ts'],
    // Thousands of simulated members start. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    // What takes longer has hung: machines are slow, and other files run on the same cores.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
