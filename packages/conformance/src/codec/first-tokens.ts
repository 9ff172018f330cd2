import type { RequestStateCodec } from '@sealring/core';
import type { Sealed } from './shared-stream.ts';
import type { CodecTrial } from './trial.ts';

/** How many: a process may have sealed something before. */
const TOKENS = 16;
const LENGTH = 24;

/** The first payloads and tokens of a codec, as they go from one process or thread to another. */
export type FirstTokens = readonly { readonly payload: string; readonly token: string }[];

export function firstTokens(trial: CodecTrial, codec: RequestStateCodec): FirstTokens {
  return Array.from({ length: TOKENS }, () => {
    const payload = trial.bytes(LENGTH);
    return { payload: Buffer.from(payload).toString('base64'), token: trial.seal(codec, payload) };
  });
}

export function readFirstTokens(tokens: FirstTokens): readonly Sealed[] {
  return tokens.map(({ payload, token }) => ({ payload: Buffer.from(payload, 'base64'), token }));
}
