import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { cpus } from 'node:os';
import { promisify } from 'node:util';
import { PYTHON_SDK } from '../token-path-report.ts';
import type { PartName } from './parts.ts';

const CODEC = ['@sealring/core'];
const MCP = ['@modelcontextprotocol/client', '@modelcontextprotocol/node', '@modelcontextprotocol/server'];

/** Packages whose versions affect a part. */
const PACKAGES: Readonly<Record<PartName, readonly string[]>> = {
  'token-path': [
    ...CODEC,
    '@modelcontextprotocol/server',
    'jose',
    '@hapi/iron',
    'iron-webcrypto',
    '@fastify/secure-session',
    '@aws-crypto/client-node',
  ],
  boundary: [...CODEC, '@sealring/mcp', ...MCP],
  'fleet-costs': [...CODEC, '@aws-crypto/client-node'],
  growth: CODEC,
  steadiness: [...CODEC, '@sealring/mcp', ...MCP, '@aws-sdk/client-kms', 'redis'],
  instructions: CODEC,
};
const PROGRAMS: Readonly<Partial<Record<PartName, string>>> = { steadiness: 'redis-server', instructions: 'valgrind' };

export function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown processor'} × ${cpus().length}, ${process.platform} ${process.arch}`;
}

export async function versionsOf(part: PartName): Promise<Readonly<Record<string, string>>> {
  const { openssl, v8 } = process.versions;
  const versions: Record<string, string> = { OpenSSL: openssl ?? 'none', V8: v8 };
  for (const name of PACKAGES[part]) versions[name] = await packageVersion(name);
  if (part === 'token-path') versions[`${PYTHON_SDK.package} (Python)`] = PYTHON_SDK.version;
  const program = PROGRAMS[part];
  if (program !== undefined) versions[program] = await programVersion(program);
  return versions;
}

async function packageVersion(name: string): Promise<string> {
  const path = findPackageJSON(name, import.meta.url);
  if (path === undefined) throw new Error(`${name} is not installed`);
  return JSON.parse(await readFile(path, 'utf8')).version;
}

/** Results are kept even if a package does not report its version. */
async function programVersion(command: string): Promise<string> {
  const told = await promisify(execFile)(command, ['--version']).catch(() => undefined);
  return /\d+(?:\.\d+)+/.exec(told?.stdout ?? '')?.[0] ?? 'unknown';
}
