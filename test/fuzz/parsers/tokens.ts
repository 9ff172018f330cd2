import {
  AesGcmRequestStateCodec,
  type Clock,
  createKmsCodec,
  type KeyWrapper,
  localKeyWrapper,
  memoryRing,
} from '@sealring/core';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { bytes, Fault, fuzzKey, named, type Parser, text } from '../parser.ts';

/** The clock of every parser, which stands still, so that no key expires in a long run. */
export const NOW_MS = Date.UTC(2026, 10, 22);
export const frozen: Clock = {
  wallMs: () => NOW_MS,
  monotonicNs: () => 1_000_000_000n,
  schedule: () => () => undefined,
};

const PAYLOADS = ['', 'x', '{"step":2}', 'ü'.repeat(40), 'a'.repeat(300)];
const refuses = named('InvalidRequestState');

/** Tokens of both formats of a ring, and the reasons for their refusal. */
export async function tokenParsers(): Promise<readonly Parser[]> {
  const generator = xoroshiro128plus(1);
  // Data keys then come from the source of randomness below: the same ring in every run.
  const local = localKeyWrapper({ masterKey: fuzzKey('master key') });
  const keyWrapper: KeyWrapper = {
    provider: local.provider,
    keyId: local.keyId,
    supports: local.supports,
    wrap: (dataKey, given) => local.wrap(dataKey, given),
    unwrap: (wrapped, given) => local.unwrap(wrapped, given),
  };
  const options = {
    keyWrapper,
    ring: memoryRing(),
    create: 'now',
    accept: ['sealring', 'python'],
    clock: frozen,
    random: (fill: Uint8Array) => {
      for (let i = 0; i < fill.length; i++) fill[i] = generator.next();
    },
  } as const;
  const native = await createKmsCodec({ ...options, format: 'sealring' });
  const python = await createKmsCodec({ ...options, format: 'python' });
  const secret = new AesGcmRequestStateCodec([fuzzKey('python secret'), fuzzKey('older python secret')]);
  const sealed = (codec: { seal(payload: Uint8Array): string }): readonly string[] =>
    PAYLOADS.map((payload) => codec.seal(bytes(payload)));
  const seeds = [...sealed(native), ...sealed(python)].map(bytes);
  const foreign = [...seeds, ...sealed(native.for('sessions')).map(bytes), ...sealed(secret).map(bytes)];
  const words = ['sr1.', 'v1.', 'v1e.', '.', 'A'.repeat(12), '_-'];
  return [
    {
      name: 'ring-token',
      seeds: foreign,
      words,
      refuses,
      parse: (input) => checkCopy(native.unseal(text(input))),
    },
    {
      name: 'ring-token-inspected',
      seeds: foreign,
      words,
      refuses,
      parse: (input) => JSON.stringify(native.inspect(text(input))),
    },
    {
      name: 'python-token',
      seeds: sealed(secret).map(bytes),
      words,
      refuses,
      parse: (input) => checkCopy(secret.unseal(text(input))),
    },
  ];
}

/** An unsealed payload is one that was sealed: any other would be a forgery. */
function checkCopy(payload: Uint8Array): void {
  if (!PAYLOADS.includes(text(payload))) throw new Fault('unsealed a payload that was never sealed');
}
