import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { root, toolEnvironment } from './prepare.mjs';

/** The packages that are published, each after its dependencies in this repository: `{ folder, manifest }`. */
export function publishedPackages() {
  const waiting = readdirSync(join(root, 'packages'))
    .map((name) => join('packages', name))
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .map((folder) => ({ folder, manifest: manifestOf(folder) }))
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

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
}

/** The packages of this repository that an installed package needs, without optional peers. */
export function oursIn({ dependencies, peerDependencies, peerDependenciesMeta = {} }) {
  const needed = Object.keys({ ...dependencies, ...peerDependencies });
  return needed.filter((name) => name.startsWith('@sealring/') && peerDependenciesMeta[name]?.optional !== true);
}

/** Runs npm, and returns its standard output; its errors go to standard error. */
export function npm(args, cwd = root) {
  const options = { cwd, env: toolEnvironment, encoding: 'utf8', maxBuffer: 2 ** 26 };
  return execFileSync('npm', args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

/**
 * Whether a package is published with its modules in one file: scripts/bundle.mjs. False for packages with programs,
 * which find their files beside their modules.
 */
function isBundled({ bin }) {
  return bin === undefined;
}

/**
 * Packs packages into a folder, as they are published; all of them, unless their folders are given. They must be built.
 * @returns npm's report on each: `[{ name, filename, size, unpackedSize, files }]`.
 */
export function pack(target, folders = publishedPackages().map((one) => one.folder)) {
  return withPublishedFolders(folders, (published) => {
    const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', target];
    return JSON.parse(npm([...args, ...published]));
  });
}

/** Calls `use` with the folder of each package as it is published: its own, or a bundled copy. */
export function withPublishedFolders(folders, use) {
  const copies = mkdtempSync(join(tmpdir(), 'sealring-bundles-'));
  try {
    return use(
      folders.map((folder) => {
        if (!isBundled(manifestOf(folder))) return join(root, folder);
        const copy = join(copies, basename(folder));
        execFileSync(process.execPath, [join(root, 'scripts/bundle.mjs'), basename(folder), copy], {
          stdio: 'inherit',
        });
        return copy;
      }),
    );
  } finally {
    rmSync(copies, { recursive: true, force: true });
  }
}
