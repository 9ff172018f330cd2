import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'core',
    include: ['test/**/*.test.ts'],
    setupFiles: ['../../test/support/fixed-seed.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
