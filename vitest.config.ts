import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './scripts/test-order.mjs';

export default defineConfig({
  test: {
    projects: ['packages/*', 'test'],
    sequence: { sequencer: SlowestFirst },
    coverage: {
      provider: 'v8',
      // Tests import the build, whose source maps lead back to `src`. Paths are from the root of each package.
      include: ['**/dist/**/*.js', '**/src/**/*.ts'],
      reportsDirectory: 'coverage',
      reportOnFailure: true,
      reporter: ['html', 'text-summary', 'json-summary'],
    },
  },
});
