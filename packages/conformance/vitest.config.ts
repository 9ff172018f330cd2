import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'conformance',
    include: ['test/**/*.test.ts'],
    // Generous: a slow machine is no failure.
    testTimeout: 120_000,
    // What is concurrent waits for timeouts.
    maxConcurrency: 12,
  },
});
