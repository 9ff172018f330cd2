import { defineProject } from 'vitest/config';
// @boundaries-ignore code that the tests of all packages share is not a package
import { limits } from '../../test/support/limits.ts';

export default defineProject({
  test: {
    name: 'redis',
    include: ['test/**/*.test.ts'],
    ...limits,
    globalSetup: ['../../test/support/redis.ts'],
  },
});
