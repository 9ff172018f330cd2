import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packTarball } from '../support/tarballs.ts';
import { type ColdStart, measureColdStart } from './cold-start.ts';
import type { Progress } from './report/parts.ts';

/** The installed packages, each alone in a folder. `imports` is the module that a server imports. */
interface Contender {
  readonly name: string;
  readonly imports: string;
  /** Packages of this repository that are packed and installed; the others come from the registry. */
  readonly ours?: readonly string[];
  readonly more?: readonly string[];
}

const CONTENDERS: readonly Contender[] = [
  { name: '@sealring/core', imports: '@sealring/core', ours: ['core'] },
  { name: '@sealring/aws-kms', imports: '@sealring/aws-kms', ours: ['core', 'aws-kms'] },
  { name: '@sealring/gcp-kms', imports: '@sealring/gcp-kms', ours: ['core', 'gcp-kms'] },
  { name: '@sealring/azure-key-vault', imports: '@sealring/azure-key-vault', ours: ['core', 'azure-key-vault'] },
  { name: '@sealring/vault-transit', imports: '@sealring/vault-transit', ours: ['core', 'vault-transit'] },
  { name: '@aws-sdk/client-kms', imports: '@aws-sdk/client-kms' },
  { name: '@google-cloud/kms', imports: '@google-cloud/kms' },
  { name: '@azure/keyvault-keys', imports: '@azure/keyvault-keys', more: ['@azure/identity'] },
  { name: '@aws-crypto/client-node', imports: '@aws-crypto/client-node' },
  { name: 'jose', imports: 'jose' },
  { name: 'iron-session', imports: 'iron-session' },
];

/** The cost of one package. */
export interface ImportCost {
  readonly name: string;
  readonly version: string;
  /** Packages in `node_modules`. */
  readonly packages: number;
  /** Bytes of all their files. */
  readonly bytes: number;
  /** The fastest import. Milliseconds. */
  readonly importMs: number;
}

/** The cost of each package, and the cold starts of the first token. */
export interface ImportsReport {
  readonly imports: readonly ImportCost[];
  readonly coldStart: ColdStart;
}

/**
 * Installs each package alone, and imports each in new processes, in turn. The fastest import counts, because other
 * work on the machine only adds to it.
 */
export async function measureImports(
  { rounds }: { readonly rounds: number },
  progress: Progress,
): Promise<ImportsReport> {
  const root = mkdtempSync(join(tmpdir(), 'sealring-imports-'));
  try {
    const steps = CONTENDERS.length + 2 * rounds;
    const folders = CONTENDERS.map((contender, index) => {
      progress(index / steps);
      return install(contender, join(root, String(index)));
    });
    const best = CONTENDERS.map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round < rounds; round++) {
      progress((CONTENDERS.length + round) / steps);
      for (const [index, { imports }] of CONTENDERS.entries()) {
        best[index] = Math.min(best[index] ?? 0, importMs(imports, folders[index] ?? ''));
      }
    }
    const coldStart = await measureColdStart(
      folders[CONTENDERS.findIndex(({ name }) => name === '@sealring/aws-kms')] ?? '',
      {
        rounds,
        onRound: (round) => progress((CONTENDERS.length + rounds + round) / steps),
      },
    );
    const imports = CONTENDERS.map(({ name }, index) => ({
      name,
      ...installedIn(folders[index] ?? '', name),
      importMs: best[index] ?? 0,
    }));
    return { imports, coldStart };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The costs as a Markdown table; times as multiples of the import of `@sealring/core`. */
export function importTable(costs: readonly ImportCost[]): string {
  const own = costs.find(({ name }) => name === '@sealring/core')?.importMs ?? Number.NaN;
  const rows = costs.map(
    ({ name, version, packages, bytes, importMs: ms }) =>
      `| \`${name}\` ${version} | ${packages} | ${(bytes / 1e6).toFixed(1)} MB | ${(ms / own).toFixed(2)} |`,
  );
  return [
    '| package | packages installed | on disk | import, in imports of core |',
    '|---|---:|---:|---:|',
    ...rows,
  ].join('\n');
}

function install({ name, ours = [], more = [] }: Contender, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const specs = ours.length === 0 ? [name] : ours.map((one) => packTarball(one, folder));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent'];
  execFileSync('npm', ['install', ...flags, ...specs, ...more], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return folder;
}

function importMs(module: string, cwd: string): number {
  const program = `const began = performance.now(); await import(${JSON.stringify(module)});
process.stdout.write(String(performance.now() - began)); process.exit();`;
  // The environment without the options of this process.
  const env = { PATH: process.env['PATH'] };
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd, env, encoding: 'utf8' }));
}

function installedIn(folder: string, name: string): Pick<ImportCost, 'version' | 'packages' | 'bytes'> {
  const modules = join(folder, 'node_modules');
  const lock: { readonly packages: Readonly<Record<string, unknown>> } = JSON.parse(
    readFileSync(join(folder, 'package-lock.json'), 'utf8'),
  );
  const { version } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
  const files = readdirSync(modules, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.reduce((sum, { parentPath, name: file }) => sum + statSync(join(parentPath, file)).size, 0);
  return { version, packages: Object.keys(lock.packages).length - 1, bytes };
}
