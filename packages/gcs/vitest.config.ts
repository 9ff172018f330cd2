import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'gcs',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/fake-gcs.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
