import { defineProject } from 'vitest/config';
import { limits } from './support/limits.ts';

export default defineProject({
  test: {
    name: 'test',
    include: ['**/*.test.ts'],
    globalSetup: ['./support/moto.ts'],
    // Thousands of simulated members start. Their warnings are emitted, but not printed.
    execArgv: ['--disable-warning=SEALRING_WAITING'],
    ...limits,
  },
});
