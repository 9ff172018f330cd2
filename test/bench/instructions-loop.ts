/**
 * `node instructions-loop.ts <payload bytes> <warm-up> <count>`: seals, then unseals this often, under a counter that
 * begins a new part at each call of `process.memoryUsage()`. Prints the heap bytes that the seals and the unseals took.
 */
import { type Clock, createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { payloadOf } from './payload.ts';

const WALL_MS = Date.parse('2026-11-21T03:00:00Z');
const [bytes = 0, warmUp = 0, count = 0] = process.argv.slice(2).map(Number);
let readings = 0n;
// Reads the system's clock, as the default one does, but returns a fixed time: a second without a seal means a new
// salt, and under a counter a second passes.
const clock: Clock = {
  wallMs() {
    Date.now();
    return WALL_MS;
  },
  monotonicNs() {
    process.hrtime.bigint();
    return (readings += 10_000n);
  },
};
const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') }),
  ring: memoryRing(),
  clock,
});
const { payload } = payloadOf(bytes);
const token = codec.seal(payload);
for (let i = 0; i < warmUp; i++) {
  codec.unseal(token);
  codec.seal(payload);
}

const before = process.memoryUsage().heapUsed;
for (let i = 0; i < count; i++) codec.seal(payload);
const sealed = process.memoryUsage().heapUsed;
for (let i = 0; i < count; i++) codec.unseal(token);
const unsealed = process.memoryUsage().heapUsed;

process.stdout.write(JSON.stringify([sealed - before, unsealed - sealed]));
await codec.close();
