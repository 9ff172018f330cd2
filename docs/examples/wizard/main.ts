import { randomBytes } from 'node:crypto';
import { localKeyWrapper, memoryRing } from '@sealring/core';
import { repeat, type Sent, signInAs } from './client.ts';
import { WizardServer } from './server.ts';

/** Ada's answers, page by page; `back` where she changes her mind. */
const ANSWERS = ['Lisbon', 2, 'back', 3, true, true];

function say(who: string, what: string): void {
  process.stdout.write(`${who.padEnd(10)} ${what}\n`);
}

function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

/** Sends a made-up or copied token. It must be refused, for a reason that only the server knows. */
async function refused(server: WizardServer, what: string, request: Sent, reason: string): Promise<void> {
  const answer = await repeat(server.url, request);
  const known = server.refusals.pop();
  must(answer.startsWith('-326') && known === reason, `${what}: answered ${answer}, known as ${known}, not ${reason}`);
  say(`→ ${server.name}`, `${what}: ${answer} (reason on ${server.name}: ${known})`);
}

const servers: WizardServer[] = [];
try {
  // The servers share this; the bookings represent a database.
  const shared = {
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    bookings: new Set<string>(),
  };
  for (const name of ['A', 'B', 'C']) servers.push(await WizardServer.start(name, shared));
  const [a, b, c] = servers;
  must(a !== undefined && b !== undefined && c !== undefined, 'three servers');

  const ada = await signInAs('ada', servers, ANSWERS, say);
  const told = await ada.callTool('book', {});
  must(told.startsWith('booked: 3 nights in Lisbon with breakfast'), `the wizard went wrong: ${told}`);
  await ada.close();
  const [first = 0] = ada.tokenLengths;
  must(first > 0 && first < (ada.tokenLengths.at(-1) ?? 0), 'the state grows with the pages');

  // Pages are bookmarks: an older token leads back to its page, and the user continues from there.
  const nights = ada.sent[2];
  const last = ada.sent.at(-1);
  must(nights !== undefined && last !== undefined, 'enough rounds');
  const branch = await repeat(b.url, nights.answering(5));
  must(branch.startsWith('Breakfast?'), `the older page went wrong: ${branch}`);
  say('→ B', `the second page again, with 5 nights: ${branch}`);
  const again = await repeat(c.url, last);
  must(again.startsWith('already booked') && shared.bookings.size === 1, `booked twice: ${again}`);
  say('→ C', `the last page again: ${again}`);

  const skipped = JSON.stringify({ booking: 'mine', answers: ['Lisbon', 300, true] });
  await refused(a, 'a state that she made up', last.withState(skipped), 'malformed');
  await refused(b, 'sent by mallory', last.by('mallory'), 'principal');
  say('', 'every step succeeded');
} catch (error) {
  say('', `FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  for (const server of servers) await server.close();
}
