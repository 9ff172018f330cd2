import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'dynamodb',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/moto.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
