import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freezeProcess } from '../freeze.ts';
import { installedOnce } from '../installed-once.ts';
import { freePort } from '../redis.ts';
import { startOrSkip } from '../servers.ts';
import { type ApiServer, kubeConfig, NAMESPACE } from './api-server.ts';

const sourceOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
/** The versions in the `go.mod` of each: another version is built beside it. */
const KUBERNETES = 'v1.34.2';
const ETCD = 'v3.6.16';
const READY_MS = 90_000;
const TOKENS = 20;

/**
 * kube-apiserver on etcd, built from their modules. That takes ten minutes and 1.5 GB once, so it requires
 * `SEALRING_KUBERNETES=1`. Undefined without it, after one line of output.
 */
export async function startRealApiServerOrSkip(): Promise<ApiServer | undefined> {
  if (process.env['SEALRING_KUBERNETES'] === '1') {
    let api: ApiServer | undefined;
    await startOrSkip(async () => {
      api = await startRealApiServer();
      return api.server;
    });
    return api;
  }
  process.stdout.write('skipping tests on kube-apiserver: set SEALRING_KUBERNETES=1, which builds it with Go\n');
  return undefined;
}

/** @throws {MissingPrerequisite} without Go, or access to the modules. */
async function startRealApiServer(): Promise<ApiServer> {
  const apiserver = await built('kube-apiserver', KUBERNETES, 'apiserver');
  const etcd = await built('etcd', ETCD, 'etcd');
  const directory = await mkdtemp(join(tmpdir(), 'sealring-kubernetes-'));
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
  const tokens = Array.from({ length: TOKENS }, (_, index) => `token-${index},user-${index},user-${index}`);
  await writeFile(join(directory, 'tokens.csv'), ['admin,admin,admin,system:masters', ...tokens, ''].join('\n'));
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(join(directory, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  await writeFile(join(directory, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));

  const store = await launch(directory, etcd, [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=http://127.0.0.1:${etcdPort}`,
    `--advertise-client-urls=http://127.0.0.1:${etcdPort}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-cluster=default=http://127.0.0.1:${peerPort}`,
    '--unsafe-no-fsync',
  ]);
  let server: ChildProcess | undefined;
  const ca = (): string => readFileSync(join(directory, 'certs', 'apiserver.crt'), 'utf8');

  async function call(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const headers = { authorization: 'Bearer admin', 'content-type': type };
    const asked = request({ host: '127.0.0.1', port, path, method, headers, ca: ca(), agent: false });
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await once(asked, 'response');
    return { status: response.statusCode, body: await json(response).catch(() => undefined) };
  }

  async function start(): Promise<void> {
    server = await launch(directory, apiserver, [
      `--etcd-servers=http://127.0.0.1:${etcdPort}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${join(directory, 'certs')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${join(directory, 'sa.pub')}`,
      `--service-account-signing-key-file=${join(directory, 'sa.key')}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      '--authorization-mode=RBAC',
      `--token-auth-file=${join(directory, 'tokens.csv')}`,
      '--disable-admission-plugins=ServiceAccount',
      '--shutdown-delay-duration=0s',
    ]);
    const until = performance.now() + READY_MS;
    while (!(await isReady())) {
      if (performance.now() > until) throw new Error('kube-apiserver did not start');
      await pause(200);
    }
  }

  async function isReady(): Promise<boolean> {
    if (!existsSync(join(directory, 'certs', 'apiserver.crt'))) return false;
    const made = await call('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    }).catch(() => undefined);
    return made?.status === 201 || made?.status === 409;
  }

  async function end(process: ChildProcess | undefined): Promise<void> {
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  }

  await start();
  let granted = 0;
  return {
    server: {
      address: `https://127.0.0.1:${port}`,
      host: '127.0.0.1',
      port,
      start,
      kill: () => end(server),
      freeze: () => freezeProcess(server),
      thaw: () => void server?.kill('SIGCONT'),
      async stop() {
        await end(server);
        await end(store);
        await rm(directory, { recursive: true, force: true });
      },
    },
    config: ({ token = 'admin', port: other = port } = {}) =>
      kubeConfig({ server: `https://127.0.0.1:${other}`, caData: Buffer.from(ca()).toString('base64') }, token),
    call,
    async token(permissions) {
      const user = `user-${granted}`;
      const rules = permissions.map((permission) => {
        const [verb = '', resource = '', name = ''] = permission.split(/[ /]/);
        return {
          apiGroups: [''],
          resources: [resource],
          verbs: [verb],
          ...(name === '' ? {} : { resourceNames: [name] }),
        };
      });
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
      const head = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: user } };
      await call('POST', `${rbac}/roles`, { ...head, kind: 'Role', rules });
      await call('POST', `${rbac}/rolebindings`, {
        ...head,
        kind: 'RoleBinding',
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: user },
        subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
      });
      const token = `token-${granted++}`;
      // The API server reads roles with its own watch.
      await pause(500);
      return token;
    },
    async compact() {
      // A restart empties its cache, and etcd has forgotten what was compacted.
      const version = JSON.stringify({ key: 'AA==', range_end: 'AA==' });
      const at = await fetch(`http://127.0.0.1:${etcdPort}/v3/kv/range`, { method: 'POST', body: version });
      const { header } = (await at.json()) as { readonly header: { readonly revision: string } };
      const body = JSON.stringify({ revision: header.revision, physical: true });
      await fetch(`http://127.0.0.1:${etcdPort}/v3/kv/compaction`, { method: 'POST', body });
      await end(server);
      await start();
    },
  };
}

/** The path of a program, from a Go module of this folder. */
async function built(program: string, version: string, source: string): Promise<string> {
  const folder = await installedOnce({
    name: `${program}-${version}`,
    command: 'go',
    args: (into) => ['build', '-C', sourceOf(source), '-trimpath', '-ldflags=-s -w', '-o', join(into, program), '.'],
    missing: `${program}: go is missing`,
  });
  return join(folder, program);
}

async function launch(directory: string, command: string, args: readonly string[]): Promise<ChildProcess> {
  const log = await open(join(directory, 'log.txt'), 'a');
  const child = spawn(command, args, { stdio: ['ignore', log.fd, log.fd] });
  try {
    await once(child, 'spawn');
  } finally {
    await log.close();
  }
  return child;
}
