/**
 * `node --expose-gc heap-process.ts tokens|rotations <rounds> <per round>`: prints the bytes in use, on the heap and in
 * buffers, after each round of hostile tokens or of rotations, as a JSON array.
 */
import { createTarget, HostileTokens, refusalOf } from './hostile.ts';

/** The work that is repeated. */
export type Subject = 'tokens' | 'rotations';

const [, , what, rounds, perRound] = process.argv;
const { codec, clock } = await createTarget();
const payload = Buffer.from('state');
const tokens = new HostileTokens(codec.seal(payload), 1);
const used: number[] = [];

async function round(): Promise<void> {
  for (let i = 0; i < Number(perRound); i++) {
    if (what === 'rotations') {
      clock.advance(6 * 3_600);
      await codec.rotate();
      codec.unseal(codec.seal(payload));
    } else if (refusalOf(codec, tokens.next()) === undefined) throw new Error('a hostile token was unsealed');
  }
}

for (let i = 0; i < Number(rounds); i++) {
  await round();
  // The second collection frees what finalizers hold.
  globalThis.gc?.();
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  used.push(heapUsed + arrayBuffers);
}
process.stdout.write(JSON.stringify(used));
await codec.close();
