import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonWithPackage, run } from '../python/python-package.ts';
import { HISTORIES, historyOf } from './history.ts';
import { scenesOf } from './scenes.ts';
import { SCRIPTED, scriptedScene } from './scripted.ts';

const replay = fileURLToPath(new URL('replay.py', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sealring-traces-'));
const LEAST_STEPS = 5_000;
const SCENES_OF_EACH = 6;
let python = '';

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes the lines of all scenes, each changed by `edit`. */
async function write(
  path: string,
  histories: readonly string[],
  scenes: number,
  edit: (line: string, at: number) => string = (line) => line,
): Promise<void> {
  const out = createWriteStream(path);
  let at = 0;
  for (const name of histories) {
    const history = await historyOf(name, 1);
    for await (const line of scenesOf(history, 1, scenes)) {
      if (!out.write(`${edit(JSON.stringify(line), at++)}\n`)) await once(out, 'drain');
    }
  }
  out.end();
  await once(out, 'finish');
}

interface Replayed {
  readonly steps: number;
  readonly differing: number;
  readonly differences: readonly string[];
}

async function replayed(path: string): Promise<Replayed> {
  const { code, output } = await run(python, [replay, path], { timeoutMs: 900_000 });
  expect(code, output.slice(-3_000)).toBe(0);
  const lines = output.trim().split('\n');
  const { steps, differing } = JSON.parse(lines.at(-1) ?? '{}') as { steps: number; differing: number };
  return { steps, differing, differences: lines.slice(0, -1).map((line) => line.slice(0, 2_000)) };
}

test('a Python member reacts to every step like a TypeScript member, whatever the store holds', {
  timeout: 1_200_000,
}, async () => {
  const path = join(folder, 'all.jsonl');
  await write(path, HISTORIES, SCENES_OF_EACH);
  const { steps, differing, differences } = await replayed(path);
  expect(differences).toEqual([]);
  expect(differing).toBe(0);
  expect(steps).toBeGreaterThanOrEqual(LEAST_STEPS);
});

test.each(SCRIPTED)('a Python member reacts like a TypeScript member to every step of the script %s', async (name) => {
  const path = join(folder, 'script.jsonl');
  const lines = await scriptedScene(name);
  writeFileSync(path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  const { steps, differences } = await replayed(path);
  expect(differences).toEqual([]);
  expect(steps).toBe(lines.length - 1);
});

test.each([
  [
    'a document that is written',
    /"outcome":"written"/,
    (line: string) => line.replace('\\"sealsUntil\\":\\"2026', '\\"sealsUntil\\":\\"2027'),
  ],
  ['health', /"ready":true/, (line: string) => line.replace('"ready":true', '"ready":false')],
] as const)('a replay reports a difference in %s', async (_, found, edit) => {
  const path = join(folder, 'edited.jsonl');
  let edited = 0;
  await write(path, ['a-revocation-is-lost'], 1, (line) => {
    if (edited > 0 || !line.includes('"expected"') || !found.test(line)) return line;
    const changed = edit(line);
    edited += changed === line ? 0 : 1;
    return changed;
  });
  expect(edited).toBe(1);
  expect((await replayed(path)).differing).toBe(1);
});
