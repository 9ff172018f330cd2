import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'conformance',
    include: ['test/**/*.test.ts'],
    // The limit is generous: a slow machine is not a failure.
    testTimeout: 120_000,
    // Concurrent tests wait for timeouts.
    maxConcurrency: 12,
  },
});
