import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packTarball } from '../support/tarballs.ts';

const packages = fileURLToPath(new URL('../../packages', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-alone-'));
const tarballs = new Map<string, string>();

/** Whose SDK a package of the registry belongs to. */
const VENDORS: Readonly<Record<string, RegExp>> = {
  aws: /^@(?:aws-sdk|aws-crypto|aws|smithy)\//,
  google: /^(?:@google-cloud\/|google-|@grpc\/)/,
  azure: /^@azure\//,
  redis: /^(?:@redis\/|redis$|ioredis$)/,
  postgres: /^pg(?:-|$)/,
};

const ADAPTERS: Readonly<Record<string, readonly string[]>> = {
  'aws-kms': ['aws'],
  s3: ['aws'],
  dynamodb: ['aws'],
  'gcp-kms': ['google'],
  gcs: ['google'],
  'azure-key-vault': ['azure'],
  'azure-blob': ['azure'],
  'vault-transit': [],
  redis: ['redis'],
  postgres: ['postgres'],
  conformance: [],
  cli: [],
};

beforeAll(() => {
  for (const name of ['core', ...Object.keys(ADAPTERS)]) {
    tarballs.set(name, packTarball(name, temporary));
  }
}, 300_000);
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

test('every package beside core is tried here', () => {
  const speaking = readdirSync(packages).filter((name) => {
    const manifest = join(packages, name, 'package.json');
    if (!existsSync(manifest)) return false;
    const { peerDependencies = {} }: { peerDependencies?: Record<string, string> } = JSON.parse(
      readFileSync(manifest, 'utf8'),
    );
    return '@sealring/core' in peerDependencies;
  });
  expect(speaking.filter((name) => name !== 'mcp').toSorted()).toEqual(Object.keys(ADAPTERS).toSorted());
});

describe('a packed tarball in an empty project, beside core alone', () => {
  for (const [name, vendors] of Object.entries(ADAPTERS)) {
    test(`${name} brings the SDK of ${vendors.join(', ') || 'nobody'} and no other, and imports`, () => {
      const project = join(temporary, name);
      mkdirSync(project);
      const dependencies = Object.fromEntries(
        ['core', name].map((one) => [`@sealring/${one}`, `file:${tarballs.get(one) ?? ''}`]),
      );
      writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
      const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent'];
      execFileSync('npm', install, { cwd: project });

      const installed = namesIn(join(project, 'node_modules'));
      const found = Object.entries(VENDORS).filter(([, pattern]) => installed.some((one) => pattern.test(one)));
      expect(found.map(([vendor]) => vendor)).toEqual(vendors);
      expect(installed.filter((one) => one.startsWith('@sealring/'))).toEqual(
        ['@sealring/core', `@sealring/${name}`].toSorted(),
      );

      const program = `console.log(Object.keys(await import('@sealring/${name}')).length > 0)`;
      const args = ['--input-type=module', '--eval', program];
      expect(execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' }).trim()).toBe('true');
    });
  }
});

/** Packages in a node_modules folder, nested ones included. */
function namesIn(folder: string): string[] {
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    readFileSync(join(folder, '.package-lock.json'), 'utf8'),
  );
  const names = Object.keys(lock.packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13));
  return [...new Set(names)].toSorted();
}
