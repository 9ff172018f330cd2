import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Ended, runProgram } from '../support/run-program.ts';
import { packTarballs } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Programs of this repository that a user could have written; they have the same paths in the project. */
const PROGRAMS = ['docs/examples/main-job', 'docs/examples/refund', 'test/packaging/consumer'];

/** Other packages that those programs import. */
const IMPORTED = [
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/client-s3',
  '@azure/identity',
  '@azure/keyvault-keys',
  '@azure/storage-blob',
  '@google-cloud/kms',
  '@google-cloud/storage',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/node',
  '@modelcontextprotocol/server',
  'pg',
];

/** The types of the oldest supported Node: newer ones must not be needed. */
const TYPES = { '@types/node': '20.19.0', '@types/pg': '^8.23.1', '@types/ws': '^8.18.1' };

/** Compiler settings of a user. */
interface CompilerSetup {
  readonly module: string;
  readonly moduleResolution: string;
  /** Whether the declarations of libraries, including these packages, are left unchecked. */
  readonly skipLibCheck: boolean;
  readonly out?: string;
}

/** A project outside this repository, with every tarball installed in one go. */
export interface ConsumerProject {
  readonly folder: string;
  /** Compiles the programs: to JavaScript below `out`, or without output. */
  compile(tsc: string, setup: CompilerSetup): Promise<Ended>;
  remove(): void;
}

/**
 * Packs and installs. This is slow: call it once per test file.
 *
 * @param sdks - Versions of vendor SDKs, instead of the newest in their ranges.
 */
export async function createConsumerProject(sdks: Readonly<Record<string, string>> = {}): Promise<ConsumerProject> {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-consumer-'));
  const tarballs = packTarballs(folder);
  const { dependencies: versions }: { dependencies: Record<string, string> } = JSON.parse(
    readFileSync(join(root, 'test', 'package.json'), 'utf8'),
  );
  const ours = tarballs.map(({ name, path }) => [name, `file:${path}`] as const);
  const theirs = IMPORTED.map((name) => [name, versions[name]] as const);
  const dependencies = { ...Object.fromEntries([...ours, ...theirs]), ...TYPES, ...sdks };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
  for (const program of PROGRAMS) {
    mkdirSync(dirname(join(folder, program)), { recursive: true });
    cpSync(join(root, program), join(folder, program), { recursive: true });
  }
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent'];
  const { code, output } = await runProgram('npm', install, { cwd: folder, timeoutMs: 300_000 });
  if (code !== 0) throw new Error(`npm install ended with ${code}: ${output}`);
  let compilations = 0;
  return {
    folder,
    compile(tsc, setup) {
      const file = join(folder, `tsconfig.${compilations++}.json`);
      writeFileSync(file, JSON.stringify({ compilerOptions: compilerOptions(setup), include: PROGRAMS }));
      return runProgram(process.execPath, [tsc, '-p', file, '--pretty', 'false'], { cwd: folder, timeoutMs: 300_000 });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function compilerOptions({ out, ...resolution }: CompilerSetup): object {
  return {
    ...resolution,
    target: 'ES2022',
    lib: ['ES2022'],
    types: ['node'],
    strict: true,
    ...(out === undefined
      ? { noEmit: true, allowImportingTsExtensions: true }
      : { rootDir: '.', outDir: out, rewriteRelativeImportExtensions: true }),
  };
}
