import { inspect } from 'node:util';
import type { RequestStateCodec } from '@sealring/core';
import { sameBytes } from '../bytes.ts';
import { type CheckedRequirement, expectThat, must, NotApplicable, should } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { damagedForms, GARBAGE } from './integrity.ts';
import { CONTRACT, KIT, SPEC } from './sources.ts';
import { BUDGET_MS, type CodecTrial, tokenText } from './trial.ts';

const LONGEST_REASON = 32;
/** More than whoever counts them would let pass. */
const MANY_REFUSALS = 2_000;
/** Shorter pieces come up by chance. */
const TELLING_LENGTH = 12;

/** Damaged tokens of every kind a refusal may tell apart, with what was done to them. */
function damaged(token: string): readonly (readonly [string, string])[] {
  const middle = token.length >> 1;
  const swapped = (at: number): string => token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
  return [
    ['', 'no text'],
    ['x', 'one character'],
    ['__proto__', '__proto__'],
    [token.slice(0, 5), 'the first five characters'],
    [token.slice(0, -1), 'without its last character'],
    [`${token}A`, 'with a character more'],
    [`${token}=`, 'with padding'],
    [`${token}\n`, 'with a newline'],
    [swapped(0), 'with another first character'],
    [swapped(4), 'with another fifth character'],
    [swapped(middle), 'with another character in the middle'],
    [swapped(token.length - 2), 'with another character near its end'],
    ['A'.repeat(token.length), 'as many times A'],
  ];
}

/** The one error that refuses tokens, and what it may tell. */
export const REFUSAL_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must(
    'CODEC-REFUSAL-CLASS',
    'Every token is refused by one and the same error, InvalidRequestState.',
    CONTRACT,
    async (trial) => {
      const [codec, stranger] = [await trial.create(), await trial.createStranger()];
      const [token, other] = [
        trial.seal(codec, trial.text('state of a tool')),
        trial.seal(codec, trial.text('other state')),
      ];
      const bad: (readonly [string, string])[] = [
        ...damaged(token).map(([variant, what]) => [variant, what === 'no text' ? what : `a token ${what}`] as const),
        ...[...damagedForms(token, other)].map(([variant, what]) => [variant, `a token ${what}`] as const),
        ...GARBAGE.map((garbage) => [garbage, tokenText(garbage)] as const),
        [trial.seal(stranger, trial.text('state of a tool')), 'a stranger’s token'],
      ];
      for (const [refusal, what] of refusalsOf(trial, codec, bad)) trial.expectRefusalClass(refusal, what);
    },
  ),
  must(
    'CODEC-REFUSAL-SECRET',
    'A refusal shows no payload: not in its message, its stack or its members.',
    SPEC,
    async (trial) => {
      const codec = await trial.create();
      const canary = trial.text(Buffer.from(trial.random.bytes(18)).toString('hex'));
      if (canary.length < TELLING_LENGTH) throw new NotApplicable('its payloads are too short to be recognised');
      for (const [refusal, what] of refusalsOf(trial, codec, damaged(trial.seal(codec, canary)))) {
        const isShown = shows(contentsOf(refusal), canary);
        expectThat(!isShown, `the refusal of a token ${what} shows the payload`);
      }
    },
  ),
  should('CODEC-REFUSAL-TOKEN', 'A refusal does not repeat the token.', KIT, async (trial) => {
    const codec = await trial.create();
    for (const [token, what] of damaged(trial.seal(codec, trial.text('state of a tool')))) {
      const outcome = trial.outcome(codec, token);
      if (token.length < TELLING_LENGTH || !('refusal' in outcome)) continue;
      const error = outcome.refusal;
      const piece = token.slice(-TELLING_LENGTH);
      const shown = error instanceof Error ? `${error.message}${inspect(Object.values(error))}` : inspect(error);
      expectThat(
        !shown.includes(token.slice(0, TELLING_LENGTH)) && !shown.includes(piece),
        `the refusal of a token ${what} repeats it`,
      );
    }
  }),
  should('CODEC-REFUSAL-REASON', 'A refusal says why in at most 32 characters.', CONTRACT, async (trial) => {
    const codec = await trial.create();
    const bad = damaged(trial.seal(codec, trial.text('state of a tool')));
    for (const [error, what] of refusalsOf(trial, codec, bad)) {
      const message = error instanceof Error ? error.message : '';
      expectThat(message.length <= LONGEST_REASON, `the refusal of a token ${what} has ${message.length} characters`);
      expectThat(message !== '', `the refusal of a token ${what} says nothing`);
    }
  }),
  must('CODEC-AFTER-REFUSAL', 'A refused token changes nothing for the next good one.', CONTRACT, async (trial) => {
    const codec = await trial.create();
    const payload = trial.text('state of a tool');
    const good = trial.seal(codec, payload);
    const bad = damaged(good).filter(([token]) => 'refusal' in trial.outcome(codec, token));
    for (const [token, what] of bad) {
      trial.refusal(codec, token, what);
      expectThat(
        sameBytes(trial.unseal(codec, good), payload),
        `after a token ${what}, a good one opens to other bytes`,
      );
      // And back: what was opened just now makes no bad one good.
      trial.refusal(codec, token, `${tokenText(token)}, ${what}, after a good one`);
    }
    const until = performance.now() + BUDGET_MS;
    for (let i = 0; i < MANY_REFUSALS && performance.now() < until; i++) {
      trial.outcome(codec, bad[i % bad.length]?.[0]);
    }
    expectThat(
      sameBytes(trial.unseal(codec, good), payload),
      `after ${MANY_REFUSALS} refusals, a good token opens to other bytes`,
    );
    expectThat(sameBytes(trial.unseal(codec, trial.seal(codec, payload)), payload), 'after refusals, seal is broken');
  }),
];

/** What refused bad tokens, and what had been done to each. That one is not refused at all is for other requirements. */
function refusalsOf(
  trial: CodecTrial,
  codec: RequestStateCodec,
  bad: readonly (readonly [string, string])[],
): readonly (readonly [unknown, string])[] {
  const refusals = trial
    .sample(bad, () => trial.outcome(codec, bad[0]?.[0]))
    .flatMap(([token, what]) => {
      const outcome = trial.outcome(codec, token);
      return 'refusal' in outcome ? [[outcome.refusal, what] as const] : [];
    });
  if (refusals.length === 0) throw new NotApplicable('it refuses nothing');
  return refusals;
}
