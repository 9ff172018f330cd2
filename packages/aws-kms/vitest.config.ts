import { defineProject } from 'vitest/config';

export default defineProject({
  test: {
    name: 'aws-kms',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/moto.ts'],
  },
});
