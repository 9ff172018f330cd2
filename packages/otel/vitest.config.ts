import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'otel',
    include: ['test/**/*.test.ts'],
    // The limit is generous: a slow machine is not a failure.
    testTimeout: 60_000,
  },
});
