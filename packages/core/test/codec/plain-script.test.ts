import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('a process stays alive while it awaits the codec, and exits by itself afterwards', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-script-'));
  try {
    const script = join(import.meta.dirname, '..', 'support', 'plain-script.ts');
    const ended = spawnSync(process.execPath, [script, join(folder, 'ring.json')], { encoding: 'utf8' });
    expect({ status: ended.status, stdout: ended.stdout, stderr: ended.stderr }).toEqual({
      status: 0,
      stdout: 'done',
      stderr: '',
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
