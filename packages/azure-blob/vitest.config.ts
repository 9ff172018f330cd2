import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'azure-blob',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/azurite.ts'],
    // What takes longer has hung: machines are slow, and other files run on the same cores.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
