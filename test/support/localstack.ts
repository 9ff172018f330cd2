import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonVenv } from './python-venv.ts';
import { freePort } from './redis.ts';
import { type RunningServer, startServer } from './servers.ts';

// The four after the first are older versions: with newer ones it does not start, or warns that it has no DNS.
const REQUIREMENTS = [
  'localstack-core[base-runtime]==4.10.0',
  'cbor2==5.9.0',
  'pyopenssl==25.3.0',
  'rolo==0.7.6',
  'localstack-twisted==25.5.0',
  'psutil==7.1.3',
];

/**
 * Starts LocalStack's KMS on a free loopback port: unlike moto it enforces key states, knows which key made a
 * ciphertext, and has real multi-Region replicas. Every region and account exists; `http://127.0.0.1:PORT`.
 *
 * Differences from AWS: it makes 32-byte data keys with keys that cannot (RSA, pending import), accepts a context whose
 * boundaries are shifted as the same one, and checks no permissions.
 */
export async function startLocalstack(): Promise<RunningServer> {
  const bin = await pythonVenv('localstack', REQUIREMENTS);
  const root = await mkdtemp(join(tmpdir(), 'sealring-localstack-'));
  const listen = `127.0.0.1:${await freePort()}`;
  const address = `http://${listen}`;
  const removeRoot = (): Promise<void> => rm(root, { recursive: true, force: true });
  try {
    const server = await startServer({
      name: 'localstack',
      command: join(bin, 'python'),
      args: ['-m', 'localstack.runtime.main'],
      env: {
        SERVICES: 'kms',
        STRICT_SERVICE_LOADING: '1',
        EAGER_SERVICE_LOADING: '1',
        GATEWAY_LISTEN: listen,
        // The other one listens on every address.
        GATEWAY_SERVER: 'hypercorn',
        FILESYSTEM_ROOT: root,
        // In a container it would write to /var/lib instead.
        OVERRIDE_IN_DOCKER: '0',
        DNS_ADDRESS: '0',
        DISABLE_EVENTS: '1',
        SKIP_SSL_CERT_DOWNLOAD: '1',
      },
      readySeconds: 120,
      async ready(printed) {
        return printed.includes('Ready.') && (await servesKms(address)) ? address : undefined;
      },
    });
    return {
      address,
      async stop() {
        await server.stop();
        await removeRoot();
      },
    };
  } catch (error) {
    await removeRoot();
    throw error;
  }
}

async function servesKms(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/_localstack/health`, { signal: AbortSignal.timeout(5000) });
    const { services } = (await response.json()) as { services?: { kms?: string } };
    return services?.kms === 'available' || services?.kms === 'running';
  } catch {
    return false;
  }
}
