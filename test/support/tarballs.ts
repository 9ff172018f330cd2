import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const packages = fileURLToPath(new URL('../../packages', import.meta.url));

/** Packs a package of this repository as it would be published. Returns the path of its tarball. */
export function packTarball(name: string, folder: string): string {
  const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder];
  const printed = execFileSync('npm', args, { cwd: join(packages, name), encoding: 'utf8' });
  const [packed]: readonly { readonly filename: string }[] = JSON.parse(printed);
  return join(folder, packed?.filename ?? '');
}
