import { createKmsCodec, type KmsCodec } from '@sealring/core';
import { HandClock } from '../fleet/hostile.ts';
import { type CountedServices, countedServices } from './fleet-costs-counting.ts';

/** The time between two keys: 48 of them are alive together, because the first one unseals for 31 hours. */
const APART_SECONDS = 1_500;
/** More time than a new key needs until it seals. */
const PROPAGATION_SECONDS = 4_600;

/** A ring of some keys, the newest of which seals, on a fixed clock. */
export interface GrownRing {
  readonly services: CountedServices;
  readonly clock: HandClock;
}

export async function ringOf(keys: number): Promise<GrownRing> {
  const grown = { services: countedServices(), clock: new HandClock() };
  await using maker = await joinRing(grown);
  while (maker.health().keys.length < keys) {
    grown.clock.advance(APART_SECONDS);
    await maker.rotate();
  }
  grown.clock.advance(PROPAGATION_SECONDS);
  await maker.refresh();
  return grown;
}

/** A separate codec, like one in another process. */
export function joinRing({ services: { keyWrapper, ring }, clock }: GrownRing): Promise<KmsCodec> {
  return createKmsCodec({ keyWrapper, ring, clock });
}

/** One token from each of this number of other processes, so there are as many salts. */
export async function tokensOfOthers(ring: GrownRing, count: number, payload: Uint8Array): Promise<readonly string[]> {
  const tokens: string[] = [];
  for (let i = 0; i < count; i++) {
    await using other = await joinRing(ring);
    // The text is one flat string, like input from outside.
    tokens.push(Buffer.from(other.seal(payload), 'latin1').toString('latin1'));
  }
  return tokens;
}
