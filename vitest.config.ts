import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './scripts/test-order.mjs';

export default defineConfig({
  test: {
    projects: ['packages/*', 'test'],
    sequence: { sequencer: SlowestFirst },
    coverage: {
      provider: 'v8',
      // Tests import what is built; its source maps lead back to `src`.
      include: ['packages/*/dist/**/*.js', 'packages/*/src/**/*.ts'],
      reportsDirectory: 'coverage',
      reporter: ['html', 'text-summary', 'json-summary'],
    },
  },
});
