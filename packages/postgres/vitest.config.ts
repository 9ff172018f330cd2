import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'postgres',
    include: ['test/**/*.test.ts'],
    // Generous: a slow machine is no failure.
    testTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    globalSetup: ['../../test/support/postgres.ts'],
  },
});
