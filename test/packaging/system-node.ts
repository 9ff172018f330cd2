import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The machine's own node of the given major version, or the running one where there is none; the title says which. */
export function findSystemNode(repository: string, major: number): { path: string; title: string } {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, 'node');
    if (folder.startsWith(repository) || !existsSync(path)) continue;
    const version = versionOf(path);
    if (version?.startsWith(`v${major}.`) === true) return { path, title: `Node ${major}` };
  }
  return { path: process.execPath, title: `Node ${process.versions.node}, there being no Node ${major}` };
}

function versionOf(path: string): string | undefined {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' }).trim();
  } catch {
    return undefined; // a shim that points nowhere
  }
}
