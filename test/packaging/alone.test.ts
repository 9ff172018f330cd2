import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';
import { packTarballs, publishedFolders } from '../support/tarballs.ts';

const packages = fileURLToPath(new URL('../../packages', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-alone-'));
let tarballs: ReadonlyMap<string, string> = new Map();

/** The vendor of an SDK in the registry. */
const VENDORS: Readonly<Record<string, RegExp>> = {
  aws: /^@(?:aws-sdk|aws-crypto|aws|smithy)\//,
  google: /^(?:@google-cloud\/|google-|@grpc\/)/,
  azure: /^@azure\//,
  kubernetes: /^@kubernetes\//,
  redis: /^(?:@redis\/|redis$|ioredis$)/,
  postgres: /^pg(?:-|$)/,
  opentelemetry: /^@opentelemetry\//,
  mcp: /^@modelcontextprotocol\//,
};

/** The vendors whose SDKs a package of this repository needs; none if it is not listed. */
const BRINGS: Readonly<Record<string, readonly string[]>> = {
  'aws-kms': ['aws'],
  s3: ['aws'],
  dynamodb: ['aws'],
  // Google's own SDK requires the API of OpenTelemetry.
  'gcp-kms': ['google', 'opentelemetry'],
  gcs: ['google'],
  'azure-key-vault': ['azure'],
  'azure-blob': ['azure'],
  kubernetes: ['kubernetes'],
  redis: ['redis'],
  postgres: ['postgres'],
  otel: ['opentelemetry'],
  mcp: ['mcp'],
};

/**
 * Install scripts of dependencies: for `gcp-kms`, Google's SDK has a package that compares version numbers and may
 * print a warning. Everything works without it: the tests install nothing with its scripts.
 */
const INSTALL_SCRIPTS: Readonly<Record<string, readonly string[]>> = { 'gcp-kms': ['protobufjs'] };

/** The licences that dependencies may have, as SPDX expressions: a person must check any other. */
const LICENCES = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
];

beforeAll(() => {
  tarballs = new Map(packTarballs(temporary).map(({ name, path }) => [name, path]));
});
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

/** The record that npm keeps of an installed package. */
interface Installed {
  readonly name: string;
  readonly hasInstallScript?: boolean;
  readonly license?: string;
}

describe.concurrent('a packed tarball in an empty project, with its peer dependencies only', () => {
  for (const folder of publishedFolders()) {
    const vendors = BRINGS[folder] ?? [];
    test(`${folder} installs the SDK of ${vendors.join(', ') || 'no vendor'} and no other, has no unknown install script and only free licences, and can be imported`, async () => {
      const name = `@sealring/${folder}`;
      const project = join(temporary, folder);
      const ours = oursFor(folder);
      mkdirSync(project);
      const dependencies = Object.fromEntries(ours.map((one) => [one, `file:${tarballs.get(one)}`]));
      writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
      const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent'];
      expect(await runProgram('npm', install, { cwd: project, timeoutMs: 300_000 })).toEqual({ code: 0, output: '' });

      const installed = installedIn(project);
      const names = installed.map((one) => one.name);
      const found = Object.entries(VENDORS).filter(([, pattern]) => names.some((one) => pattern.test(one)));
      expect(found.map(([one]) => one)).toEqual(vendors);
      expect([...new Set(names.filter((one) => one.startsWith('@sealring/')))].toSorted()).toEqual(ours.toSorted());
      const scripted = installed.filter((one) => one.hasInstallScript === true).map((one) => one.name);
      expect(scripted).toEqual(INSTALL_SCRIPTS[folder] ?? []);
      expect(installed.filter((one) => !LICENCES.includes(one.license ?? 'none'))).toEqual([]);

      const program = `console.log(Object.keys(await import('${name}')).length > 0)`;
      const imported = await runProgram(process.execPath, ['--input-type=module', '--eval', program], { cwd: project });
      expect(imported).toEqual({ code: 0, output: 'true\n' });
    });
  }
});

/** The package and its required peers in this repository: core, for most. */
function oursFor(folder: string): string[] {
  interface Manifest {
    readonly name: string;
    readonly dependencies?: object;
    readonly peerDependencies?: object;
    readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  }
  const manifest: Manifest = JSON.parse(readFileSync(join(packages, folder, 'package.json'), 'utf8'));
  const needed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter(
    (name) => name.startsWith('@sealring/') && manifest.peerDependenciesMeta?.[name]?.optional !== true,
  );
  return [manifest.name, ...needed];
}

/** Everything in a node_modules folder, nested ones included. */
function installedIn(project: string): Installed[] {
  const lock: { packages: Record<string, Omit<Installed, 'name'>> } = JSON.parse(
    readFileSync(join(project, 'node_modules', '.package-lock.json'), 'utf8'),
  );
  return Object.entries(lock.packages).map(([path, { hasInstallScript, license }]) => ({
    name: path.slice(path.lastIndexOf('node_modules/') + 13),
    ...(hasInstallScript !== undefined && { hasInstallScript }),
    ...(license !== undefined && { license }),
  }));
}
