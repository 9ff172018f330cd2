import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Most tests wait for servers and processes: two files at a time also where there are only two cores.
  test: { projects: ['packages/*', 'test'], maxWorkers: 2 },
});
