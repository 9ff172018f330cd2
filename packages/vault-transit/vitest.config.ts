import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'vault-transit',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/openbao.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
