import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { installedOnce } from '../support/installed-once.ts';
import { MissingPrerequisite } from '../support/python-venv.ts';
import { runProgram } from '../support/run-program.ts';
import { publishedFolders } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-release-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<string, { readonly needs?: string; readonly permissions: object; readonly steps: readonly Step[] }>
  >;
}

const source = readFileSync(join(root, '.github', 'workflows', 'release.yml'), 'utf8');
const workflow: Workflow = parse(source);
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const manifestIn = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

describe('the release workflow', () => {
  test('runs for tags only, and only its publishing job, which follows every test, has an identity token', () => {
    expect(workflow.on).toEqual({ push: { tags: ['v*'] } });
    expect(workflow.permissions).toEqual({});
    expect(workflow.jobs['verify']?.permissions).toEqual({ contents: 'read' });
    expect(workflow.jobs['publish']?.needs).toBe('verify');
    expect(workflow.jobs['publish']?.permissions).toEqual({ contents: 'write', 'id-token': 'write' });
    expect(Object.keys(workflow.jobs)).toEqual(['verify', 'publish']);
    expect(workflow.jobs['verify']?.steps.at(-1)?.run).toBe('.ci/run');
  });

  test('pins every action to a commit, with the version in a comment', () => {
    const named = [...source.matchAll(/uses: (.*)/g)].map(([, what]) => what ?? '');
    expect(named.length).toBe(steps.filter(({ uses }) => uses !== undefined).length);
    for (const what of named) expect(what).toMatch(/^actions\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('leaves no credentials behind, uses no secret, and runs no install script of a dependency', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    for (const { with: options } of checkouts) expect(options?.['persist-credentials']).toBe(false);
    expect(source).not.toMatch(/secrets\./);
    expect(readFileSync(join(root, '.npmrc'), 'utf8')).toContain('strict-allow-scripts=true\n');
    const { allowScripts }: { allowScripts: object } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(new Set(Object.values(allowScripts))).toEqual(new Set([false]));
  });

  test('publishes with provenance, and runs scripts that exist', () => {
    const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
    expect(commands).toContain('node scripts/publish.mjs --provenance');
    const { scripts }: { scripts: object } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const named = (pattern: RegExp) => commands.flatMap((command) => pattern.exec(command)?.slice(1) ?? []);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named(/^npm run (\S+)/)));
    const files = [...named(/^node (\S+)/), ...named(/^(\.ci\/\S+)/)];
    expect(files).toHaveLength(3);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  test('passes actionlint', async (context) => {
    const actionlint = await actionlintOrNone();
    if (actionlint === undefined) return context.skip();
    const files = readdirSync(join(root, '.github', 'workflows')).map((name) => join('.github', 'workflows', name));
    const args = ['-no-color', '-shellcheck=', '-pyflakes=', ...files];
    expect(await runProgram(actionlint, args, { cwd: root })).toEqual({ code: 0, output: '' });
  });
});

test('changesets give all packages the same next version, with ranges that admit it', async () => {
  const copy = join(temporary, 'changesets');
  const folders = publishedFolders().map((name) => join('packages', name));
  const manifests = [...folders, 'test', 'docs', '.'].map((folder) => join(folder, 'package.json'));
  for (const file of ['.changeset', 'package-lock.json', ...manifests]) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
  const git = (...args: string[]) =>
    runProgram('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: copy });
  await git('init', '--quiet');
  await git('add', 'package.json', '.changeset', 'packages');
  expect(await git('commit', '--quiet', '--message=x')).toMatchObject({ code: 0 });

  const { code, output } = await runProgram(join(root, 'node_modules', '.bin', 'changeset'), ['version'], {
    cwd: copy,
  });
  expect(output).not.toMatch(/error/i);
  expect(code).toBe(0);
  const after = folders.map((folder) => manifestIn(join(copy, folder)));
  const [next = ''] = new Set(after.map(({ version }) => version));
  expect(new Set(after.map(({ version }) => version)).size).toBe(1);
  const ranges = after.flatMap(({ dependencies, peerDependencies }) =>
    Object.entries({ ...dependencies, ...peerDependencies }).filter(([needed]) => needed.startsWith('@sealring/')),
  );
  expect(new Set(ranges.map(([, range]) => range))).toEqual(new Set([`^${next}`]));
});

test('a package is published once and publicly, after its dependencies, and published versions are skipped', async () => {
  const there = new Set(
    publishedFolders()
      .filter((name) => !['core', 'mcp'].includes(name))
      .map((name) => `@sealring/${name}`),
  );
  const published: string[] = [];
  await using registry = await startRegistry(
    (name) => there.has(name),
    (name) => published.push(name),
  );
  const env = {
    ...process.env,
    npm_config_registry: registry.url,
    [`npm_config_${registry.url.slice(5)}:_authToken`]: 'x',
  };
  const publish = () => runProgram(process.execPath, [join(root, 'scripts', 'publish.mjs')], { env });
  expect(await publish()).toMatchObject({ code: 0 });
  expect(published).toEqual(['@sealring/core public', '@sealring/mcp public']);
});

test('the bill of materials of a package lists its dependencies by version, digest and licence, and nothing about this machine', async () => {
  const folder = join(temporary, 'sbom');
  const { code, output } = await runProgram(process.execPath, [join(root, 'scripts', 'sbom.mjs'), folder, 'mcp']);
  expect(output).toMatch(/^sealring-mcp-\S+\.cdx\.json: \d+ components\n$/);
  expect(code).toBe(0);
  const [file = ''] = readdirSync(folder);
  const text = readFileSync(join(folder, file), 'utf8');
  interface Component {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly licenses?: readonly object[];
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  }
  const bill: { bomFormat: string; metadata: { component: Component }; components: readonly Component[] } =
    JSON.parse(text);
  expect(bill.bomFormat).toBe('CycloneDX');
  const { version } = manifestIn(join(root, 'packages', 'mcp'));
  expect(bill.metadata.component.purl).toBe(`pkg:npm/%40sealring/mcp@${version}`);
  expect(bill.components.map(({ purl }) => purl)).toContain(`pkg:npm/%40sealring/core@${version}`);
  expect(bill.components.map(({ purl }) => purl.replace(/@[^@]*$/, ''))).toEqual(
    expect.arrayContaining(['pkg:npm/lru-cache', 'pkg:npm/%40modelcontextprotocol/server']),
  );
  for (const { name, licenses, hashes } of bill.components) {
    expect(licenses, name).toHaveLength(1);
    expect(
      hashes?.map(({ alg }) => alg),
      name,
    ).toEqual(['SHA-512']);
  }
  expect(text).not.toContain('file:');
  expect(text).not.toContain(tmpdir());
});

/** npm's requests to a registry when it publishes, on a loopback port. */
async function startRegistry(has: (name: string) => boolean, publish: (what: string) => void) {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = decodeURIComponent(new URL(request.url ?? '', 'http://registry').pathname.slice(1));
    response.setHeader('content-type', 'application/json');
    if (request.method === 'PUT') {
      const { access, versions } = (await json(request)) as { access: string; versions: object };
      publish(`${name} ${access}`);
      response.writeHead(Object.keys(versions).length === 1 ? 201 : 400).end('{}');
    } else if (has(name)) {
      const { version } = manifestIn(join(root, 'packages', name.replace('@sealring/', '')));
      response.end(JSON.stringify({ name, versions: { [version]: {} } }));
    } else {
      response.writeHead(404).end('{}');
    }
  }
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const ACTIONLINT = 'v1.7.12';

async function actionlintOrNone(): Promise<string | undefined> {
  try {
    const folder = await installedOnce({
      name: `actionlint-${ACTIONLINT}`,
      command: 'go',
      args: () => ['install', `github.com/rhysd/actionlint/cmd/actionlint@${ACTIONLINT}`],
      env: (own) => ({ GOBIN: own }),
      missing: 'actionlint: go is missing',
    });
    return join(folder, 'actionlint');
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping a test: ${error.message}\n`);
    return undefined;
  }
}
