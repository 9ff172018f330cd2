import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'dashboard',
    include: ['test/**/*.test.ts'],
    // Generous: a slow machine is no failure.
    testTimeout: 60_000,
  },
});
