import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'test',
    include: ['**/*.test.ts'],
    globalSetup: ['./support/moto.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
