import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'redis',
    include: ['test/**/*.test.ts'],
    // Generous: a slow machine is no failure.
    testTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    globalSetup: ['../../test/support/redis.ts'],
  },
});
