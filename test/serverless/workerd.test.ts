import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { createKmsCodec, type KmsCodec, localKeyWrapper } from '@sealring/core';
import { s3Ring } from '@sealring/s3';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { fleetPolicy } from '../fleet/fleet-policy.ts';
import { freePort } from '../support/redis.ts';
import { until } from '../support/until.ts';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const isSupported = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
const moto = inject('moto');

/** A Worker has no background refresh: a token of an unknown key is what makes it read the ring, as often as this allows. */
const policy = { ...fleetPolicy, missRefreshSeconds: 1 };
const masterKey = randomBytes(32);
const folder = mkdtempSync(join(tmpdir(), 'sealring-workerd-'));
let workerd: ChildProcess | undefined;
let workers: readonly [string, string] = ['', ''];
let node: KmsCodec;

/** Bundled for Node.js, as `nodejs_compat` provides it, in one file. */
async function bundle(): Promise<string> {
  const built = await rolldown({ input: WORKER, platform: 'node' });
  const { output } = await built.write({ dir: folder, format: 'esm', codeSplitting: false });
  await built.close();
  const [{ fileName, code }] = output;
  // A module of a Worker has no address.
  writeFileSync(join(folder, fileName), code.replaceAll('import.meta.url', '"file:///worker.js"'));
  return fileName;
}

function configuration(file: string, ports: readonly number[]): string {
  const bindings = { ENDPOINT: moto, MASTER_KEY: masterKey.toString('hex'), POLICY: JSON.stringify(policy) };
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`);
  const services = ports.map((_, at) => `(name = "worker${at}", worker = .worker)`);
  const sockets = ports.map(
    (port, at) => `(name = "socket${at}", address = "127.0.0.1:${port}", http = (), service = "worker${at}")`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [${services.join()}, (name = "network", network = (allow = ["private", "local"]))],
  sockets = [${sockets.join()}],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "${file}")],
  compatibilityDate = "2026-11-01",
  globalOutbound = "network",
  bindings = [${texts.join()}],
);
`;
}

async function startWorkers(): Promise<void> {
  const ports = [await freePort(), await freePort()] as const;
  writeFileSync(join(folder, 'config.capnp'), configuration(await bundle(), ports));
  const require = createRequire(import.meta.resolve('workerd/package.json'));
  const binary = require.resolve(`@cloudflare/workerd-linux-${process.arch === 'x64' ? '64' : 'arm64'}/bin/workerd`);
  workerd = spawn(binary, ['serve', join(folder, 'config.capnp')], { stdio: 'inherit' });
  workers = [`http://127.0.0.1:${ports[0]}`, `http://127.0.0.1:${ports[1]}`];
  await until(async () => {
    try {
      return (await fetch(`${workers[1]}/none`, { method: 'HEAD' })).status > 0;
    } catch {
      return false;
    }
  });
}

async function ask(worker: string, path: string, body = ''): Promise<string> {
  const answer = await fetch(`${worker}${path}`, { method: 'POST', body, signal: AbortSignal.timeout(30_000) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(text);
  return text;
}

function openInNode(token: string): string {
  return Buffer.from(node.unseal(token)).toString();
}

beforeAll(async () => {
  if (!isSupported || moto === '') return;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new S3Client({ endpoint: moto, region: 'us-east-1', forcePathStyle: true, credentials });
  await client.send(new CreateBucketCommand({ Bucket: 'rings' }));
  await startWorkers();
  // A Worker creates the ring; Node could not.
  await ask(workers[0], '/keys');
  const ring = s3Ring({ bucket: 'rings', key: 'payments.ring', client });
  node = await createKmsCodec({ keyWrapper: localKeyWrapper({ masterKey }), ring, create: 'never', policy });
});
afterAll(async () => {
  await node?.close();
  if (workerd?.exitCode === null) {
    const exited = once(workerd, 'exit');
    workerd.kill();
    await exited;
  }
  rmSync(folder, { recursive: true });
});

test.skipIf(!isSupported || moto === '')(
  'two Workers and a Node server unseal each other’s tokens on a ring that a Worker created in S3',
  async () => {
    const [one, other] = workers;
    const [ofOne, ofOther] = [await ask(one, '/seal', 'of one'), await ask(other, '/seal', 'of the other')];
    const ofNode = node.seal(Buffer.from('of Node'));
    for (const worker of workers) {
      expect(await ask(worker, '/unseal', ofOne)).toBe('of one');
      expect(await ask(worker, '/unseal', ofOther)).toBe('of the other');
      expect(await ask(worker, '/unseal', ofNode)).toBe('of Node');
    }
    expect([openInNode(ofOne), openInNode(ofOther)]).toEqual(['of one', 'of the other']);
    expect(new Set(node.health().keys.map(({ id }) => id))).toEqual(new Set([ofOne.slice(4, 16)]));
  },
);

test.skipIf(!isSupported || moto === '')(
  'a Worker without requests for longer than sealOutage serves the next one, with a key that it did not know',
  async () => {
    const [one, other] = workers;
    await ask(one, '/keys');
    await node.rotate({ emergency: true });
    const known = node.health().sealingKey;
    await pause((policy.sealOutageSeconds + 3) * 1_000);
    const token = node.seal(Buffer.from('new'));
    expect(token.slice(4, 16)).not.toBe(known);
    expect(await ask(one, '/unseal', token)).toBe('new');
    expect(await ask(other, '/unseal', await ask(one, '/seal', 'sealed after it'))).toBe('sealed after it');
  },
);
