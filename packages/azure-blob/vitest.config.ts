import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'azure-blob',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/azurite.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
