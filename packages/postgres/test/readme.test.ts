import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const read = (path: string): Promise<string> => readFile(new URL(path, import.meta.url), 'utf8');

test('the example in the README is identical to the example that is compiled', async () => {
  const [, example] = /```ts(?: no-run)?\n([^]*?)```/.exec(await read('../README.md')) ?? [];
  expect(example).toBe(await read('readme-example.ts'));
});
