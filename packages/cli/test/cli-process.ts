import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../dist/main.js');
const MODULES = join(import.meta.dirname, '../../../node_modules');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Standard input. Default: nothing. */
  readonly input?: string;
  /** Whether nothing reads its standard output. */
  readonly isOutputClosed?: boolean;
  /** Called with the whole standard output so far, after each addition. */
  readonly onStdout?: (text: string, child: ChildProcess) => void;
  /** The same for standard error. */
  readonly onStderr?: (text: string, child: ChildProcess) => void;
}

/** Runs the built command as a process. */
export function runCli(
  args: readonly string[],
  { cwd, env = {}, input = '', isOutputClosed = false, onStdout, onStderr }: RunOptions,
): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd, env: { ...cleanEnvironment(), ...env } });
  const printed = { stdout: '', stderr: '' };
  if (isOutputClosed) child.stdout.destroy();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.stdout += text;
    onStdout?.(printed.stdout, child);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr += text;
    onStderr?.(printed.stderr, child);
  });
  // A command that does not read its input has closed it.
  child.stdin.on('error', () => undefined).end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...printed })));
}

/** An empty project, in which the packages of this repository are installed. */
export function newProject(): { readonly cwd: string; remove(): void } {
  const cwd = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
  symlinkSync(MODULES, join(cwd, 'node_modules'));
  return { cwd, remove: () => rmSync(cwd, { recursive: true, force: true }) };
}

/** Without the test runner's variables for colours and its own options, and without a configured ring. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const ours = ['NO_COLOR', 'FORCE_COLOR', 'NODE_OPTIONS'];
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !ours.includes(name) && !name.startsWith('SEALRING_')),
  );
}
