import { runCodecConformance } from '@sealring/conformance';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';

// Runs the conformance kit on the codec on this runtime: prints one line of JSON with the requirements that did not
// simply pass.

const service = () => ({
  keyWrapper: localKeyWrapper({ masterKey: crypto.getRandomValues(new Uint8Array(32)) }),
  ring: memoryRing(),
});
const [ours, theirs] = [service(), service()];

async function instanceOf(options: ReturnType<typeof service>) {
  const codec = await createKmsCodec({ ...options, create: 'now' });
  return { codec, close: () => codec.close() };
}

const { passed, results } = await runCodecConformance({
  name: 'the codec on a ring',
  create: () => instanceOf(ours),
  createPeer: () => instanceOf(ours),
  createStranger: () => instanceOf(theirs),
});
const others = results.filter(({ status }) => status === 'fail' || status === 'warn').map(({ id }) => id);
console.log(JSON.stringify({ passed, others, tried: results.length }));
