import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { createKmsCodec, localKeyWrapper, type RingStore } from '@sealring/core';
import { kubernetesRing } from '@sealring/kubernetes';
import { afterAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type ApiServer, NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { startRealApiServerOrSkip } from '../support/kubernetes/real-api-server.ts';
import { freePort } from '../support/redis.ts';
import { type Ended, runProgram } from '../support/run-program.ts';
import { until } from '../support/until.ts';

/* The guide docs/guides/kubernetes.md: an API server accepts its manifests, and its program runs. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const guide = readFileSync(join(root, 'docs/guides/kubernetes.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'sealring-manifests-'));
const MASTER_KEY = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const fake = await startFakeApiServer();
const real = await startRealApiServerOrSkip();
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await fake.server.stop();
  await real?.server.stop();
});

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

function manifestsIn(name: string): readonly Manifest[] {
  const text = readFileSync(join(root, 'docs/examples/kubernetes', name), 'utf8');
  return parseAllDocuments(text, { strict: true }).map((document) => {
    expect([...document.errors, ...document.warnings]).toEqual([]);
    return document.toJS();
  });
}

const [ring, init, server] = [manifestsIn('ring.yaml'), manifestsIn('init.yaml'), manifestsIn('server.yaml')];
const all = [...ring, ...init, ...server];
const keepers = [...manifestsIn('keeper.yaml'), ...manifestsIn('keeper-cron.yaml')];
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value);
function one(kind: string): Manifest {
  const found = all.filter((manifest) => manifest.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as Manifest;
}
const namespace = one('Namespace').metadata.name;
const account = one('ServiceAccount').metadata.name;
const container = (kind: string): unknown => at(one(kind), 'spec', 'template', 'spec', 'containers', 0);

describe('the set of manifests', () => {
  test('all manifests are in one namespace', () => {
    expect(new Set([...all, ...keepers].map(({ metadata }) => metadata.namespace ?? metadata.name))).toEqual(
      new Set([namespace]),
    );
  });

  test('creates the Secret without data, because each apply would reset the servers’ ring', () => {
    expect(Object.keys(one('Secret'))).toEqual(['apiVersion', 'kind', 'metadata', 'type']);
  });

  test('allows only three verbs on this Secret', () => {
    const secret = one('Secret').metadata.name;
    expect(at(one('Role'), 'rules')).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: [secret], verbs: ['get', 'patch', 'watch'] },
    ]);
  });

  test('binds the Role to the service account of the servers and of the Job', () => {
    const binding = one('RoleBinding');
    expect(at(binding, 'roleRef', 'name')).toBe(one('Role').metadata.name);
    expect(at(binding, 'subjects')).toEqual([{ kind: 'ServiceAccount', name: account, namespace }]);
    for (const kind of ['Deployment', 'Job']) {
      expect(at(one(kind), 'spec', 'template', 'spec', 'serviceAccountName')).toBe(account);
    }
  });

  test('names the Secret in the settings of the command', () => {
    const settings = one('ConfigMap');
    expect(at(settings, 'data', 'SEALRING_RING_STORE')).toBe(
      `kubernetes://${namespace}/${one('Secret').metadata.name}`,
    );
    expect(at(container('Job'), 'envFrom', 0, 'configMapRef', 'name')).toBe(settings.metadata.name);
  });

  test('runs the Job and the servers from one image, as a user that is not root', () => {
    expect(at(container('Job'), 'image')).toBe(at(container('Deployment'), 'image'));
    for (const kind of ['Deployment', 'Job']) {
      expect(at(one(kind), 'spec', 'template', 'spec', 'securityContext', 'runAsNonRoot')).toBe(true);
      expect(at(container(kind), 'securityContext')).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
      });
    }
  });

  test('runs the keepers with the service account and the settings of the servers, as a user that is not root', () => {
    const [deployment, cron] = keepers;
    for (const pod of [
      at(deployment, 'spec', 'template', 'spec'),
      at(cron, 'spec', 'jobTemplate', 'spec', 'template', 'spec'),
    ]) {
      expect(at(pod, 'serviceAccountName')).toBe(account);
      expect(at(pod, 'securityContext')).toEqual(at(one('Deployment'), 'spec', 'template', 'spec', 'securityContext'));
      expect(at(pod, 'containers', 0, 'securityContext')).toEqual(at(container('Deployment'), 'securityContext'));
      expect(at(pod, 'containers', 0, 'envFrom', 0, 'configMapRef', 'name')).toBe(one('ConfigMap').metadata.name);
    }
    expect(at(deployment, 'spec', 'replicas')).toBe(1);
    const labels = at(deployment, 'spec', 'template', 'metadata', 'labels');
    expect(at(deployment, 'spec', 'selector', 'matchLabels')).toEqual(labels);
  });

  test('selects the pods of the Deployment', () => {
    const labels = at(one('Deployment'), 'spec', 'template', 'metadata', 'labels');
    for (const kind of ['Deployment', 'PodDisruptionBudget']) {
      expect(at(one(kind), 'spec', 'selector', 'matchLabels')).toEqual(labels);
    }
  });

  test('the startup probe allows a start to take longer than the default of startTimeoutSeconds', () => {
    const [period, failures] = ['periodSeconds', 'failureThreshold'].map((name) =>
      Number(at(container('Deployment'), 'startupProbe', name)),
    );
    const documented = /\| `startTimeoutSeconds` \| (\d+) \|/.exec(
      readFileSync(join(root, 'docs/guides/key-lifecycle.md'), 'utf8'),
    );
    expect((period ?? 0) * (failures ?? 0)).toBeGreaterThan(Number(documented?.[1]));
    expect(guide).toContain(`\`/livez\`, for ${(period ?? 0) * (failures ?? 0)} s`);
  });

  test('requests paths that the program in the guide answers, and uses /livez for liveness', () => {
    const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].map((probe) =>
      at(container('Deployment'), probe, 'httpGet'),
    );
    expect(probes.map((probe) => at(probe, 'path'))).toEqual(['/livez', '/readyz', '/livez']);
    const ports = at(container('Deployment'), 'ports');
    expect(ports).toEqual([{ name: 'health', containerPort: 8081 }]);
    expect(new Set(probes.map((probe) => at(probe, 'port')))).toEqual(new Set(['health']));
  });
});

/** Plurals as in paths of the API. */
const RESOURCES: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  ServiceAccount: 'serviceaccounts',
  Secret: 'secrets',
  ConfigMap: 'configmaps',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  Job: 'jobs',
  CronJob: 'cronjobs',
  Deployment: 'deployments',
  PodDisruptionBudget: 'poddisruptionbudgets',
};

describe.skipIf(real === undefined)('on kube-apiserver', () => {
  const api = real as ApiServer;

  function apply(manifest: Manifest, query: string): ReturnType<ApiServer['call']> {
    const group = manifest.apiVersion === 'v1' ? '/api/v1' : `/apis/${manifest.apiVersion}`;
    const within = manifest.metadata.namespace === undefined ? '' : `/namespaces/${manifest.metadata.namespace}`;
    return api.call('POST', `${group}${within}/${RESOURCES[manifest.kind]}?fieldValidation=Strict${query}`, manifest);
  }

  test('every manifest is accepted, with no unknown field', async () => {
    for (const manifest of [...all, ...keepers]) {
      // There are no controllers here that would act on a Job, a CronJob and a Deployment.
      const query = ring.includes(manifest) ? '' : '&dryRun=All';
      expect(await apply(manifest, query)).toMatchObject({ status: 201 });
    }
    const wrong = { ...one('Deployment'), spec: { ...Object(at(one('Deployment'), 'spec')), replica: 3 } };
    expect((await apply(wrong, '&dryRun=All')).status).toBe(400);
  });

  test('with the service account of the manifests, servers create, rotate and follow the ring, and reach no other Secret', async () => {
    const secret = one('Secret').metadata.name;
    const client = as(`system:serviceaccount:${namespace}:${account}`, api.config());
    const storeOf = (name: string): RingStore => kubernetesRing({ namespace, name, client });
    const member = () =>
      createKmsCodec({
        keyWrapper: localKeyWrapper({ masterKey: MASTER_KEY }),
        ring: storeOf(secret),
        ringName: 'payments',
        create: 'never',
        policy: { missRefreshSeconds: 1 },
      });
    await expect
      .poll(() =>
        storeOf(secret)
          .read()
          .then(() => 'allowed', String),
      )
      .toBe('allowed');
    expect(await runJob(client, namespace)).toMatchObject({ code: 0, output: expect.stringContaining('created') });
    const [first, running] = [await member(), await member()];
    await first.rotate();
    await until(() => running.health().keys.length === 2);
    expect(running.health().keys).toHaveLength(2);
    expect(running.unseal(first.seal(Buffer.from('state')))).toEqual(new Uint8Array(Buffer.from('state')));
    await first.close();
    await running.close();
    // The request of kubectl apply for an unchanged manifest.
    await api.call('PATCH', `/api/v1/namespaces/${namespace}/secrets/${secret}`, one('Secret'));
    expect(await storeOf(secret).read()).toBeDefined();
    await expect(storeOf('another').read()).rejects.toMatchObject({ kind: 'denied', code: 'Forbidden' });
    await api.call('DELETE', `/api/v1/namespaces/${namespace}/secrets/${secret}`);
    const refused = storeOf(secret).write('x', { expected: undefined });
    await expect(refused).rejects.toMatchObject({ kind: 'denied', code: 'Forbidden' });
  });
});

/** Writes a file for `KUBECONFIG`. */
function kubeconfigOf(config: KubeConfig): string {
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, config.exportConfig());
  return file;
}

/** Runs the command of the Job with the settings of the ConfigMap, and a key that needs no account. */
function runJob(config: KubeConfig, where: string): Promise<Ended> {
  const key = join(folder, 'local.key');
  writeFileSync(key, MASTER_KEY.toString('base64url'), { mode: 0o600 });
  const { SEALRING_AWS_KMS_KEY_ID, ...settings } = Object(at(one('ConfigMap'), 'data')) as Record<string, string>;
  expect(SEALRING_AWS_KMS_KEY_ID).toBeDefined();
  const [command = '', ...args] = at(container('Job'), 'command') as readonly string[];
  const env = {
    ...process.env,
    ...settings,
    SEALRING_RING_STORE: settings['SEALRING_RING_STORE']?.replace(`//${namespace}/`, `//${where}/`),
    SEALRING_LOCAL_KEY_FILE: key,
    KUBECONFIG: kubeconfigOf(config),
  };
  // The checkout links no command of its packages.
  expect(command).toBe('node_modules/.bin/sealring');
  return runProgram(process.execPath, [join(root, 'packages/cli/dist/main.js'), ...args], { cwd: root, env });
}

function as(impersonateUser: string, admin: KubeConfig): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: admin.clusters,
    users: admin.users.map((user) => ({ ...user, impersonateUser })),
    contexts: admin.contexts,
    currentContext: admin.currentContext,
  });
  return config;
}

describe('the program of the guide', () => {
  /** The program, with a key wrapper that needs no account, in the namespace of the fake. */
  function programWith(masterKey: string): string {
    const code = /^```ts no-run\n(import \{ createServer \}.*?)^```$/ms.exec(guide)?.[1] ?? '';
    const changes: readonly (readonly [string, string])[] = [
      [
        "import { createAwsKmsCodec } from '@sealring/aws-kms';",
        "import { createKmsCodec, localKeyWrapper } from '@sealring/core';",
      ],
      ['createAwsKmsCodec({', 'createKmsCodec({'],
      ["keyId: 'alias/payments',", `keyWrapper: localKeyWrapper({ masterKey: Buffer.from('${masterKey}', 'hex') }),`],
      ["namespace: 'payments'", `namespace: '${NAMESPACE}'`],
    ];
    return changes.reduce((text, [from, to]) => {
      expect(text).toContain(from);
      return text.replace(from, to);
    }, code);
  }

  test('answers the probes, and ends on SIGTERM', async () => {
    const masterKey = MASTER_KEY.toString('hex');
    const kubeconfig = kubeconfigOf(fake.config());
    expect(await runJob(fake.config(), NAMESPACE)).toMatchObject({
      code: 0,
      output: expect.stringContaining('created'),
    });
    // The Job may run before every deploy.
    expect(await runJob(fake.config(), NAMESPACE)).toMatchObject({
      code: 0,
      output: expect.stringContaining('not changed'),
    });
    await using program = await startedProgram(programWith(masterKey), { KUBECONFIG: kubeconfig });
    const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${program.port}${path}`);
    await until(() =>
      get('/livez').then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    expect((await get('/livez')).status).toBe(200);
    const ready = await get('/readyz');
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({ ready: true });
    expect((await get('/')).status).toBe(404);
    expect(await program.terminate()).toEqual({ code: 0, signal: null });
  });
});

/** A program of a guide, which runs until it gets a signal. */
interface StartedProgram extends AsyncDisposable {
  /** Passed to it as `HEALTH_PORT`. */
  readonly port: number;
  /** Sends SIGTERM, and resolves when the program has ended. */
  terminate(): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts the text of a program in its own process, with this project's packages. */
async function startedProgram(code: string, environment: Readonly<Record<string, string>>): Promise<StartedProgram> {
  const port = await freePort();
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module-typescript', '--eval', code], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...environment, HEALTH_PORT: `${port}` },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit').then(([status, signal]) => ({ code: status, signal }));
  return {
    port,
    terminate() {
      child.kill('SIGTERM');
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
