import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'postgres',
    include: ['test/**/*.test.ts'],
    // The limit is generous: a slow machine is not a failure.
    testTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    globalSetup: ['../../test/support/postgres.ts'],
  },
});
