import type { RequestStateCodec } from '@sealring/core';
import { type CheckedRequirement, expectThat, must, NotApplicable } from '../requirement.ts';
import { decodings } from './decodings.ts';
import { confidential } from './secrecy.ts';
import { KIT } from './sources.ts';
import type { CodecTrial } from './trial.ts';

const LENGTH = 64;
const PAIRS = 128;
/**
 * Two codecs seal the same two payloads, each in an order that is drawn. Where a place follows from anything but the
 * payload, it is as likely to side with the other payload as with its own: that it sides with its own 96 times more often
 * in 128 pairs has a chance below 2^-61, at each of some thousand places.
 */
const MOST_AHEAD = 96;

/** What a token tells of its payload to somebody who has no key. */
export const KEYLESS_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must('CODEC-KEYLESS', 'Nothing of a token follows from the payload alone, without any key.', KIT, async (trial) => {
    confidential(trial);
    if (!trial.fits(new Uint8Array(LENGTH))) throw new NotApplicable('its payloads are too short to be recognised');
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    const pairs = Array.from({ length: PAIRS }, () => {
      const payloads = [trial.random.bytes(LENGTH), trial.random.bytes(LENGTH)] as const;
      return { here: sealBoth(trial, codec, payloads), there: sealBoth(trial, stranger, payloads) };
    });
    const telling = tellingPlaces(pairs);
    expectThat(telling === 0, `${telling} places of a token follow from the payload without any key`);
  }),
];

type Two = readonly [string, string];

interface Pair {
  readonly here: Two;
  readonly there: Two;
}

/** At how many places, characters or bytes, counted from the start or from the end. */
function tellingPlaces(pairs: readonly Pair[]): number {
  const read = pairs.map(({ here, there }) => [...here, ...there].map((token) => decodings(token)));
  const forms = read[0]?.[0]?.length ?? 0;
  let most = 0;
  for (let form = 0; form < forms; form++) {
    const tokens = read.map((four) => four.map((decoded) => decoded[form] ?? new Uint8Array(0)));
    const places = Math.min(...tokens.flat().map(({ length }) => length));
    for (const fromEnd of [false, true]) {
      let found = 0;
      for (let place = 0; place < places; place++) {
        const ahead = tokens.reduce((sum, four) => sum + Math.sign(sidesAt(four, fromEnd ? -1 - place : place)), 0);
        if (ahead >= MOST_AHEAD) found += 1;
      }
      most = Math.max(most, found);
    }
  }
  return most;
}

/** The tokens of two payloads, sealed in an order that is drawn: a clock or a counter tells nothing then. */
function sealBoth(trial: CodecTrial, codec: RequestStateCodec, [one, other]: readonly [Uint8Array, Uint8Array]): Two {
  if (trial.random.below(256) < 128) return [trial.seal(codec, one), trial.seal(codec, other)];
  const last = trial.seal(codec, other);
  return [trial.seal(codec, one), last];
}

/** How much more often a place agrees with that of the same payload than with that of the other one. */
function sidesAt(four: readonly Uint8Array[], place: number): number {
  const [a, b, c, d] = four.map((bytes) => bytes.at(place));
  return Number(a === c) + Number(b === d) - Number(a === d) - Number(b === c);
}
