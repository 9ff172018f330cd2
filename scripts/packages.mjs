import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, toolEnvironment } from './prepare.mjs';

/** The packages that are published, each after those of ours that it needs: `{ folder, manifest }`. */
export function publishedPackages() {
  const waiting = readdirSync(join(root, 'packages'))
    .map((name) => join('packages', name))
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .map((folder) => ({ folder, manifest: JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) }))
    .filter(({ manifest }) => manifest.private !== true);
  const ordered = [];
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ manifest }) =>
      oursIn(manifest).every((name) => !waiting.some((other) => other.manifest.name === name)),
    );
    if (next < 0) throw new Error(`packages need one another: ${waiting.map(({ folder }) => folder).join(', ')}`);
    ordered.push(...waiting.splice(next, 1));
  }
  return ordered;
}

/** The packages of ours that an installed package needs; optional peers it does not. */
export function oursIn({ dependencies, peerDependencies, peerDependenciesMeta = {} }) {
  const needed = Object.keys({ ...dependencies, ...peerDependencies });
  return needed.filter((name) => name.startsWith('@sealring/') && peerDependenciesMeta[name]?.optional !== true);
}

/** Runs npm, and gives what it printed; what it complains of goes to standard error. */
export function npm(args, cwd = root) {
  const options = { cwd, env: toolEnvironment, encoding: 'utf8', maxBuffer: 2 ** 26 };
  return execFileSync('npm', args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Packs them all into a folder: `[{ name, filename, size, unpackedSize }]`. They must be built. */
export function pack(folder) {
  const workspaces = publishedPackages().flatMap((one) => ['--workspace', one.folder]);
  const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder, ...workspaces];
  return JSON.parse(npm(args));
}
