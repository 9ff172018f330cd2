import { defineProject } from 'vitest/config';

export default defineProject({
  test: { name: 'azure-key-vault', include: ['test/**/*.test.ts'] },
});
