import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(root, 'packages');

/** What a tarball holds, as npm says. */
export interface Tarball {
  /** `@sealring/core` */
  readonly name: string;
  readonly path: string;
  /** Bytes of the tarball. */
  readonly size: number;
  /** Bytes of what is in it. */
  readonly unpackedSize: number;
  /** Paths in it, without the leading `package/`. */
  readonly files: readonly string[];
}

/** Packs a package of this repository as it would be published. Returns the path of its tarball. */
export function packTarball(name: string, folder: string): string {
  const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder];
  const printed = execFileSync('npm', args, { cwd: join(packages, name), encoding: 'utf8' });
  const [packed]: readonly { readonly filename: string }[] = JSON.parse(printed);
  return join(folder, packed?.filename ?? '');
}

/** The folders of the packages that are published, sorted: `core`, `mcp`, … */
export function publishedFolders(): string[] {
  return readdirSync(packages)
    .filter((name) => {
      const manifest = join(packages, name, 'package.json');
      return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).private !== true;
    })
    .toSorted();
}

/** Packs all of them, in one run of npm. */
export function packTarballs(folder: string): Tarball[] {
  const workspaces = publishedFolders().flatMap((name) => ['--workspace', join('packages', name)]);
  const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder, ...workspaces];
  const printed = execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 24 });
  interface Packed extends Omit<Tarball, 'path' | 'files'> {
    readonly filename: string;
    readonly files: readonly { readonly path: string }[];
  }
  const packed: readonly Packed[] = JSON.parse(printed);
  return packed.map(({ name, size, unpackedSize, filename, files }) => ({
    name,
    path: join(folder, filename),
    size,
    unpackedSize,
    files: files.map(({ path }) => path),
  }));
}
