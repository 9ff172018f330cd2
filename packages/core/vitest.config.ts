import { defineProject } from 'vitest/config';
// @boundaries-ignore code that the tests of all packages share is not a package
import { limits } from '../../test/support/limits.ts';

export default defineProject({
  test: {
    name: 'core',
    include: ['test/**/*.test.ts'],
    // Many starts here wait. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    setupFiles: ['../../test/support/fixed-seed.ts'],
    ...limits,
  },
});
