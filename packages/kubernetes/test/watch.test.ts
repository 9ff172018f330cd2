import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { runProgram } from '../../../test/support/run-program.ts';
import { type KubernetesRingClient, kubernetesRing } from '../src/index.ts';
import { watchListener } from '../src/watch.ts';

/* Watches at a server, or behind a load balancer, that stops answering without closing the connection. */

const place = { namespace: 'sealring', name: 'ring', kind: 'Secret', key: 'ring' } as const;
const TIMEOUT_MS = 1_000;
const event = JSON.stringify({ type: 'ADDED', object: { metadata: { resourceVersion: '7' } } });

async function serverOf(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const clientOf = (server: string): KubernetesRingClient => ({
  getCurrentCluster: () => ({ server }),
  applyToHTTPSOptions: async () => undefined,
});

/** A listener at this server, and its clock. */
async function listenerAt(answer: RequestListener) {
  let nowMs = 5_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  const client = clientOf(await serverOf(answer));
  const listener = watchListener(async () => ({ answer: client }), place, TIMEOUT_MS);
  onTestFinished(() => listener.end());
  return { listener, advance: (ms: number) => void (nowMs += ms) };
}

describe('a check of a watch', () => {
  test('a check fails once the watch is 30 seconds older than the API server was asked to let it become', async () => {
    const { listener, advance } = await listenerAt((_, response) => response.writeHead(200).write(`${event}\n`));
    await new Promise<void>((heard) => void listener.start(heard, () => undefined));
    advance(330_000);
    await listener.check();
    advance(1);
    await expect(listener.check()).rejects.toThrow('did not end in time');
  });

  test('a check fails once a resumed watch has waited longer for its answer than callTimeoutSeconds', async () => {
    const answers: ServerResponse[] = [];
    const { listener, advance } = await listenerAt((_, response) => {
      answers.push(response);
      if (answers.length === 1) response.writeHead(200).write(`${event}\n`);
    });
    await new Promise<void>((heard) => void listener.start(heard, () => undefined));
    advance(300_000);
    answers[0]?.end();
    await expect.poll(() => answers.length).toBe(2);
    advance(TIMEOUT_MS);
    await listener.check();
    advance(1);
    await expect(listener.check()).rejects.toThrow('got no answer');
  });
});

test('a resumed watch without an answer is replaced at the next heartbeat', async () => {
  const answers: ServerResponse[] = [];
  const server = await serverOf((_, response) => {
    answers.push(response);
    if (answers.length === 1) response.writeHead(200).write(`${event}\n`);
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const ring = kubernetesRing({ ...place, client: clientOf(server), callTimeoutSeconds: 1 });
  onTestFinished(() => ring.close());
  await new Promise<void>((heard) => void ring.watch(heard));
  await vi.advanceTimersByTimeAsync(1_000);
  answers[0]?.end();
  await expect.poll(() => answers.length).toBe(2);
  // The heartbeat, and the longest pause before the first reconnection.
  await vi.advanceTimersByTimeAsync(15_100);
  await expect.poll(() => answers.length).toBe(3);
  expect(answers[1]?.destroyed).toBe(true);
});

test('a watch does not keep the process alive, not even while it waits for its answer', async () => {
  const server = await serverOf(() => undefined);
  const program = `
    import { kubernetesRing } from '@sealring/kubernetes';
    const client = { getCurrentCluster: () => ({ server: '${server}' }), applyToHTTPSOptions: async () => undefined };
    const ring = kubernetesRing({ namespace: 'sealring', name: 'ring', client, callTimeoutSeconds: 60 });
    ring.watch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 500));
    console.log('done');
  `;
  const asked = { cwd: import.meta.dirname, timeoutMs: 20_000 };
  const ended = await runProgram(process.execPath, ['--input-type=module', '--eval', program], asked);
  expect(ended).toMatchObject({ code: 0, output: expect.stringContaining('done') });
});
