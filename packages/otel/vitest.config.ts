import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'otel',
    include: ['test/**/*.test.ts'],
    // Generous: a slow machine is no failure.
    testTimeout: 60_000,
  },
});
