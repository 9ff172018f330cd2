import { setTimeout as pause } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { callTool } from '../support/call-tool.ts';
import { peerFleet } from './peer-fleet.ts';
import { PythonClient, type ServerProcess } from './processes.ts';
import { RoundRobin } from './round-robin.ts';
import type { Told } from './settings.ts';

const FLOWS_OF_EACH_CLIENT = 1_000;
const AT_A_TIME = 4;
const ROTATED_WITHIN_MS = 60_000;

const fleet = peerFleet();

/** The results of all flows. */
interface Outcome {
  flows: number;
  readonly failures: string[];
  /** How often `sealed by > unsealed by` occurred, by language. */
  readonly pairs: Map<string, number>;
}

function count(outcome: Outcome, order: string, answer: { readonly text?: string; readonly error?: string }): void {
  outcome.flows += 1;
  if (answer.text === undefined || !answer.text.startsWith('{')) {
    outcome.failures.push(`${order}: ${answer.error ?? answer.text}`);
    return;
  }
  const told: Told = JSON.parse(answer.text);
  if (told.order !== order) outcome.failures.push(`${order}: the state of ${told.order}`);
  const languageOf = (name: string): string => name.split(' ')[0] ?? '';
  const pair = `${languageOf(told.sealedBy)} > ${languageOf(told.openedBy)}`;
  outcome.pairs.set(pair, (outcome.pairs.get(pair) ?? 0) + 1);
}

async function flowsOfTypeScript(url: string, user: string, stopped: AbortSignal, outcome: Outcome): Promise<void> {
  let started = 0;
  const flows = async (): Promise<void> => {
    const client = new Client(
      { name: 'test', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url), { authProvider: { token: async () => user } }),
    );
    while (!stopped.aborted || started < FLOWS_OF_EACH_CLIENT) {
      const order = `typescript ${++started}`;
      try {
        const { content } = await client.callTool({ name: 'refund', arguments: { order } });
        const [first] = content;
        count(outcome, order, first?.type === 'text' ? { text: first.text } : { error: 'no text' });
      } catch (error) {
        count(outcome, order, { error: String(error) });
      }
      await pause(20);
    }
    await client.close();
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, flows));
}

/** Waits until every server in service has sealed with a new key. */
async function rotated(front: RoundRobin, before: ReadonlySet<string>, names: () => readonly string[]): Promise<void> {
  const sealsAnew = (name: string): boolean => {
    const key = front.keysOf.get(name)?.at(-1);
    return key !== undefined && !before.has(key);
  };
  const deadline = Date.now() + ROTATED_WITHIN_MS;
  while (!names().every(sealsAnew)) {
    if (Date.now() > deadline) throw new Error(`still sealing with an old key: ${JSON.stringify([...front.keysOf])}`);
    await pause(100);
  }
}

test('two TypeScript and two Python servers behind one address complete every flow through two rotations and a rolling restart', async () => {
  const { python, operator, serve, atEnd } = fleet();
  const front = await RoundRobin.start();
  atEnd(() => front.stop());
  const serving: ServerProcess[] = await Promise.all([
    serve('typescript', 'typescript 1'),
    serve('python', 'python 1'),
    serve('typescript', 'typescript 2'),
    serve('python', 'python 2'),
  ]);
  for (const server of serving) front.add(server);

  const outcome: Outcome = { flows: 0, failures: [], pairs: new Map() };
  const stop = new AbortController();
  const pythonClient = new PythonClient(python, front.url, 'ada', AT_A_TIME, FLOWS_OF_EACH_CLIENT);
  atEnd(() => pythonClient.kill());
  const typescriptClient = flowsOfTypeScript(front.url, 'ada', stop.signal, outcome);

  const names = (): readonly string[] => serving.map(({ name }) => name);
  const keys = (): ReadonlySet<string> => new Set([...front.keysOf.values()].flat());
  const rotate = async (): Promise<void> => {
    const before = keys();
    await operator.rotate();
    await rotated(front, before, names);
  };

  await rotated(front, new Set(), names);
  await rotate();
  for (const old of serving.slice()) {
    const [language, number] = [old.language, Number(old.name.split(' ')[1])];
    const successor = await serve(language, `${language} ${number + 2}`);
    front.add(successor);
    serving.splice(serving.indexOf(old), 1, successor);
    await front.remove(old.name);
    await old.stop();
  }
  await rotate();

  stop.abort();
  await Promise.all([typescriptClient, pythonClient.stop()]);
  for (const line of pythonClient.answers) {
    const { order, ...answer } = JSON.parse(line);
    count(outcome, order, answer);
  }

  expect(outcome.failures).toEqual([]);
  expect(outcome.flows).toBeGreaterThanOrEqual(2 * FLOWS_OF_EACH_CLIENT);
  expect(pythonClient.answers.length).toBeGreaterThanOrEqual(FLOWS_OF_EACH_CLIENT);
  expect(keys().size).toBe(3);
  const languages = ['typescript', 'python'];
  const pairs = languages.flatMap((sealer) => languages.map((opener) => `${sealer} > ${opener}`));
  expect([...outcome.pairs.keys()].toSorted()).toEqual(pairs.toSorted());
  console.info(`${outcome.flows} flows, ${outcome.failures.length} failed; ${JSON.stringify([...outcome.pairs])}`);
  for (const server of serving) await server.stop();
});

const ORDER = { name: 'refund', user: 'ada', argumentsText: '{"order":"A1"}' };

test('each server accepts the user’s own state from every other server, and refuses other users’ states with the same answer', async () => {
  const { serve } = fleet();
  const servers = await Promise.all([serve('typescript', 'typescript hostile'), serve('python', 'python hostile')]);
  const refused = {
    error: {
      code: -32602,
      message: 'Invalid or expired requestState',
      data: { reason: 'invalid_request_state' },
    },
  };
  const stranger = await serve('python', 'python stranger', 'another-audience');
  for (const sealer of servers) {
    const first = await callTool(sealer.url, ORDER);
    const token = first.result?.requestState ?? '';
    expect(token).toMatch(/^sr1\./);
    const middle = Math.floor(token.length / 2);
    const tampered = `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`;
    for (const opener of servers) {
      const { result } = await callTool(opener.url, { ...ORDER, requestState: token });
      const told: Told = { order: 'A1', sealedBy: sealer.name, openedBy: opener.name };
      expect(JSON.parse(result?.content?.[0]?.text ?? '')).toEqual(told);
      expect(await callTool(opener.url, { ...ORDER, user: 'bob', requestState: token }), 'another user').toMatchObject(
        refused,
      );
      expect(
        await callTool(opener.url, { ...ORDER, argumentsText: '{"order":"A2"}', requestState: token }),
        'another order',
      ).toMatchObject(refused);
      expect(await callTool(opener.url, { ...ORDER, requestState: tampered }), 'another token').toMatchObject(refused);
      expect(await callTool(opener.url, { ...ORDER, requestState: 'A1' }), 'no token').toMatchObject(refused);
    }
    expect(await callTool(stranger.url, { ...ORDER, requestState: token }), 'another audience').toMatchObject(refused);
  }
});
