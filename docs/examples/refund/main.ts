import { randomBytes } from 'node:crypto';
import { localKeyWrapper, memoryRing } from '@sealring/core';
import { memorySingleUse } from '@sealring/mcp';
import { repeat, type Sent, signInAs } from './client.ts';
import { RefundServer } from './server.ts';

/** `€49.90` back for order 1017, once, to the person who asked, whichever server handles the call. */
const ORDER = { order: '1017', cents: 4_990 };

function say(who: string, what: string): void {
  process.stdout.write(`${who.padEnd(16)} ${what}\n`);
}

function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

/** Sends a copied token, changed or not. It must be refused, for a reason that only the server knows. */
async function refused(server: RefundServer, what: string, request: Sent, reason: string): Promise<void> {
  const answer = await repeat(server.url, request);
  const known = server.refusals.pop();
  must(answer.startsWith('-326') && known === reason, `${what}: answered ${answer}, known as ${known}, not ${reason}`);
  say(`→ ${server.name}`, `${what}: ${answer} (reason on ${server.name}: ${known})`);
}

const servers: RefundServer[] = [];
try {
  // The two servers share a KMS key, a ring, and the memory of redeemed tokens.
  const shared = {
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    singleUse: memorySingleUse(),
  };
  for (const name of ['A', 'B']) servers.push(await RefundServer.start(name, shared));
  const [a, b] = servers;
  must(a !== undefined && b !== undefined, 'two servers');

  const ada = await signInAs('ada', servers, say);
  const paid = await ada.callTool('refund', ORDER);
  must(paid === '€49.90 refunded for order 1017 by B', `the refund went wrong: ${paid}`);
  await ada.close();

  const [, second] = ada.sent;
  must(second !== undefined, 'two rounds');
  await refused(a, 'the same request once more', second, 'already used');
  await refused(b, 'one character changed', second.withState(changed), 'authentication failed');
  await refused(a, 'sent by mallory', second.by('mallory'), 'principal');
  await refused(b, 'another amount', second.withArguments({ ...ORDER, cents: 499_000 }), 'request binding');
  const [first] = ada.sent;
  must(first !== undefined, 'two rounds');
  await refused(a, 'an app without a user asks', first.by('nobody'), 'principal binding error');
  say('', 'every step succeeded');
} catch (error) {
  say('', `FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  for (const server of servers) await server.close();
}

function changed(token: string): string {
  const at = token.length - 10;
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}
