import { randomBytes } from 'node:crypto';
import { localKeyWrapper, memoryRing } from '@sealring/core';
import { startCarrier } from './carrier.ts';
import { inWords, type Message, signInAs } from './client.ts';
import { startProxy } from './proxy.ts';
import type { Served } from './serve.ts';

function say(who: string, what: string): void {
  process.stdout.write(`${who.padEnd(12)} ${what}\n`);
}

function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

function refused(server: Served, what: string, message: Message, reason: string): void {
  const known = server.refusals.pop();
  const answer = inWords(message);
  must(
    answer.startsWith('-32602') && known === reason,
    `${what}: answered ${answer}, known as ${known}, not ${reason}`,
  );
  say(`→ ${server.name}`, `${what}: ${answer} (reason on ${server.name}: ${known})`);
}

const servers: Served[] = [];
const started = async (starting: Promise<Served>): Promise<Served> => {
  const server = await starting;
  servers.push(server);
  return server;
};
try {
  const north = await started(startCarrier('North'));
  const south = await started(startCarrier('South'));
  // The settings that the two proxies share.
  const shared = {
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    carriers: new Map([north, south].map(({ name, url }) => [name, url])),
  };
  const p1 = await started(startProxy('P1', { ...shared, prefers: 'North' }));
  const p2 = await started(startProxy('P2', { ...shared, prefers: 'South' }));

  // P2 alone would have chosen South: the state sends the second round to North.
  const ada = await signInAs('ada', [p1, p2], say);
  const first = await ada.callTool('ship', { parcel: 'a teapot' });
  must(first === 'North ships a teapot for €7, insured', `through P1 and P2: ${first}`);
  await ada.close();
  const bob = await signInAs('bob', [p2, p1], say);
  const second = await bob.callTool('ship', { parcel: 'a piano' });
  must(second === 'South ships a piano for €7, insured', `through P2 and P1: ${second}`);
  await bob.close();

  const [asked, confirmed] = ada.sent;
  must(asked !== undefined && confirmed !== undefined, 'two rounds');
  refused(p2, "ada's token, sent by mallory", await confirmed.repeat(p2.url, { by: 'mallory' }), 'principal');
  // A carrier refuses the proxy's tokens, and the proxy refuses a carrier's tokens.
  const theirs = (await asked.repeat(north.url, { by: 'ada' })).result?.requestState;
  must(theirs !== undefined, 'North asks');
  const forged = await confirmed.repeat(p1.url, { by: 'ada', requestState: theirs });
  refused(p1, "North's own token", forged, 'malformed');
  refused(north, "the proxy's token", await confirmed.repeat(north.url, { by: 'ada' }), 'malformed');
  const chosen = JSON.stringify({ carrier: 'South', requestState: theirs });
  const made = await confirmed.repeat(p1.url, { by: 'ada', requestState: chosen });
  refused(p1, 'a state that she made up', made, 'malformed');
  say('', 'every step succeeded');
} catch (error) {
  say('', `FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  for (const server of servers) await server.close();
}
