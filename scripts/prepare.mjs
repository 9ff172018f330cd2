import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'node_modules', '.bin');
const stampFile = join(root, 'node_modules', '.sealring-stamp');

/** The repository's own tools come first, and with them Node 24 if the lockfile has it for this system. */
export const toolEnvironment = {
  ...process.env,
  PATH: [bin, process.env.PATH ?? ''].join(delimiter),
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
};

/** Runs a command in the root. Resolves to its exit code and, unless `stdio` is `inherit`, its output, which `isShown` prints too. */
export function run(command, args, { stdio = 'pipe', env = toolEnvironment, isShown = false } = {}) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { cwd: root, env, stdio: ['inherit', stdio, stdio] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text;
        if (isShown) process.stdout.write(text);
      });
    }
    child.on('error', (error) => resolve({ code: 127, output: `${command}: ${error.message}\n` }));
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

async function timed(title, work) {
  process.stdout.write(`${title} …`);
  const started = Date.now();
  const result = await work();
  process.stdout.write(` ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
  return result;
}

async function install() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted) return;
  const why = existsSync(stampFile) ? 'lockfile changed' : 'first run';
  // The caller's PATH may begin with the very node_modules that npm is about to replace.
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(bin));
  const env = { ...process.env, PATH: path.join(delimiter), npm_config_loglevel: 'error' };
  const args = ['ci', '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  const { code, output } = await timed(`Installing dependencies (${why})`, () => run('npm', args, { env }));
  if (code !== 0) throw new Error(`npm ci failed\n${await withoutHosts(output, env)}`);
  writeFileSync(stampFile, wanted);
}

// Removes the host of the registry, because logs leave the machine.
async function withoutHosts(text, env) {
  const registry = (await run('npm', ['config', 'get', 'registry'], { env })).output.trim();
  const host = URL.canParse(registry) ? new URL(registry).hostname : registry;
  return text.replace(/\bhttps?:\/\/[^/\s"']+/g, '<registry>').replaceAll(host || '\0', '<registry>');
}

function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (existsSync(join(bin, 'node')) || major > 22 || (major === 22 && minor >= 18)) return;
  throw new Error(`Node ${process.versions.node} is too old for development: use 22.18 or newer, best 24.`);
}

const compile = (...more) => run('turbo', ['run', 'build', '--output-logs=errors-only', ...more]);

async function build() {
  let { code, output } = await compile();
  // `tsc -b` neither replaces a deleted file nor deletes one whose source is gone, and turbo caches its output.
  const stale = packageFolders().filter((folder) => !mirrorsSource(folder));
  if (code === 0 && stale.length > 0) {
    for (const folder of stale) rmSync(join(folder, 'dist'), { recursive: true, force: true });
    ({ code, output } = await compile('--force'));
  }
  if (code !== 0) throw new Error(`The build failed\n${output}`);
}

function packageFolders() {
  const folders = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
  return folders.filter((folder) => existsSync(join(folder, 'package.json')));
}

function mirrorsSource(folder) {
  const source = modulesIn(join(folder, 'src'), '.ts');
  const built = modulesIn(join(folder, 'dist'), '.js');
  return source.size === built.size && [...source].every((name) => built.has(name));
}

function modulesIn(folder, extension) {
  if (!existsSync(folder)) return new Set();
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(extension));
  return new Set(files.map((file) => file.slice(0, -extension.length)));
}

/** Updates dependencies and build; a second call is quick. */
export async function prepare() {
  await install();
  requireNode();
  await build();
}

/** Runs a script's main function; a failure is one message and exit code 1, never a stack. */
export async function main(work) {
  try {
    process.exitCode = await work();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(prepare);
