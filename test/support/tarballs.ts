import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(root, 'packages');

/** The content of a tarball, as npm reports it. */
export interface Tarball {
  /** `@sealring/core` */
  readonly name: string;
  readonly path: string;
  /** Bytes of the tarball. */
  readonly size: number;
  /** Unpacked size in bytes. */
  readonly unpackedSize: number;
  /** Paths in it, without the leading `package/`. */
  readonly files: readonly string[];
}

/** Packs a package of this repository as it would be published. Returns the path of its tarball. */
export function packTarball(name: string, folder: string): string {
  const [packed] = pack(folder, [join('packages', name)]);
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

/** Packs all of them. */
export function packTarballs(folder: string): Tarball[] {
  const packed = pack(
    folder,
    publishedFolders().map((name) => join('packages', name)),
  );
  return packed.map(({ name, size, unpackedSize, filename, files }) => ({
    name,
    path: join(folder, filename),
    size,
    unpackedSize,
    files: files.map(({ path }) => path),
  }));
}

interface Packed extends Omit<Tarball, 'path' | 'files'> {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/** The tarballs are made by the scripts that publish them. */
function pack(target: string, folders: readonly string[]): readonly Packed[] {
  const program = `import { pack } from ${JSON.stringify(pathToFileURL(join(root, 'scripts/packages.mjs')).href)};
process.stdout.write(JSON.stringify(pack(...JSON.parse(process.argv[1]))));`;
  const args = ['--input-type=module', '-e', program, JSON.stringify([target, folders])];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 }));
}
