import { defineProject } from 'vitest/config';
// @boundaries-ignore code that the tests of all packages share is not a package
import { limits } from '../../test/support/limits.ts';

export default defineProject({
  test: {
    name: 'vault-transit',
    include: ['test/**/*.test.ts'],
    globalSetup: ['../../test/support/openbao.ts'],
    ...limits,
  },
});
