import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MissingPrerequisite } from '../support/python-venv.ts';

const MODULES = fileURLToPath(new URL('../../terraform/', import.meta.url));

const TERRAFORM = 'terraform';

/** The place of the AWS provider in a mirror, as `terraform providers mirror` or an unpacked plugin has it. */
const AWS_PLUGIN = join('registry.terraform.io', 'hashicorp', 'aws');

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A copy of the modules in a separate folder, so that Terraform leaves nothing in the repository. */
export interface Workspace {
  /** The path of a module or an example: `aws-kms`, `aws-kms/examples/s3-ring`. */
  pathOf(folder: string): string;
  /** Runs Terraform in a folder. */
  run(folder: string, ...args: string[]): Promise<Ended>;
  /** Runs Terraform, and throws its output unless it succeeds. */
  succeed(folder: string, ...args: string[]): Promise<string>;
  /** `terraform init` from the mirror, with nothing downloaded. */
  init(folder: string): Promise<void>;
  remove(): void;
}

/**
 * @param options.aws - Whether the AWS provider is needed; the modules for other clouds are tested on their provider's schema.
 * @returns undefined, after one line of output, if the machine lacks Terraform or the provider: neither comes from a
 *   registry of packages.
 * @throws {MissingPrerequisite} instead, with `SEALRING_TERRAFORM=1`.
 */
export async function openWorkspaceOrSkip(options: { readonly aws?: boolean } = {}): Promise<Workspace | undefined> {
  try {
    return await openWorkspace(options.aws === true ? findMirror() : undefined);
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['SEALRING_TERRAFORM'] === '1') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
}

async function openWorkspace(mirror: string | undefined): Promise<Workspace> {
  const root = mkdtempSync(join(tmpdir(), 'sealring-terraform-'));
  const pathOf = (folder: string): string => join(root, folder);
  const run = (folder: string, ...args: string[]): Promise<Ended> => terraform(pathOf(folder), args);
  async function succeed(folder: string, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(folder, ...args);
    if (code !== 0) throw new Error(`terraform ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }
  try {
    cpSync(MODULES, root, { recursive: true });
    await succeed('.', 'version');
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
  return {
    pathOf,
    run,
    succeed,
    async init(folder) {
      const plugins = mirror === undefined ? [] : [`-plugin-dir=${mirror}`];
      await succeed(folder, 'init', '-backend=false', '-input=false', '-no-color', ...plugins);
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

function terraform(cwd: string, args: readonly string[]): Promise<Ended> {
  // Ignores the user's own settings.
  const env = { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1' };
  return new Promise((resolve, reject) => {
    execFile(TERRAFORM, args, { cwd, env, maxBuffer: 256 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error?.code === 'ENOENT') reject(new MissingPrerequisite('terraform is missing'));
      else if (error !== null && typeof error.code !== 'number') reject(error);
      else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

/** `TF_PLUGIN_MIRROR`, or the first of the usual folders that holds the AWS provider. */
function findMirror(): string {
  const named = process.env['TF_PLUGIN_MIRROR'];
  const usual = ['/usr/local/share/terraform/plugins', '/usr/share/terraform/plugins'];
  const folders = [join(homedir(), '.terraform.d', 'plugins'), ...usual, ...foldersIn('/opt')];
  const found = (named === undefined ? folders : [named]).find((folder) => existsSync(join(folder, AWS_PLUGIN)));
  if (found === undefined) {
    throw new MissingPrerequisite('terraform: no provider hashicorp/aws; name its mirror in TF_PLUGIN_MIRROR');
  }
  return found;
}

function foldersIn(path: string): string[] {
  return existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [];
}
