import { sameBytes } from '../bytes.ts';
import { type CheckedRequirement, expectThat, must, should } from '../requirement.ts';
import { CONTRACT, SPEC } from './sources.ts';
import { type CodecTrial } from './trial.ts';

/** From nothing to long: what is longer may take another way. */
const LENGTHS: readonly number[] = [0, 1, 5, 16, 39, 100, 1_000, 5_000, 60_000];

const TURNS = 6;
const TURN_BYTES = 32;

/** Who opens whose tokens. */
export const ISOLATION_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must('CODEC-STRANGER', 'A token of another service, with other keys, is refused.', SPEC, async (trial) => {
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      trial.refusal(codec, trial.seal(stranger, payload), 'a stranger’s token');
      trial.refusal(stranger, trial.seal(codec, payload), 'its token, at a stranger,');
    }
    // By turns, and after the owner has opened it: what one of them remembers, or has in hand, is not the other's.
    for (let turn = 0; turn < TURNS; turn++) {
      const [owner, other] = turn % 2 === 0 ? [codec, stranger] : [stranger, codec];
      const [payload, others] = [trial.bytes(TURN_BYTES), trial.bytes(TURN_BYTES)];
      const [token, otherToken] = [trial.seal(owner, payload), trial.seal(other, others)];
      for (let again = 0; again < 2; again++) {
        expectThat(sameBytes(trial.unseal(owner, token), payload), 'beside a stranger, a token opens to other bytes');
        trial.refusal(other, token, 'a stranger’s token, which the stranger has just opened,');
        const back = trial.unseal(other, otherToken);
        expectThat(sameBytes(back, others), 'after a stranger’s token, its own opens to other bytes');
      }
    }
  }),
  must('CODEC-PEER', 'Another process with the same keys opens the token.', CONTRACT, async (trial) => {
    const [codec, peer] = [await trial.create(), await trial.createPeer()];
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      const there = trial.unseal(peer, trial.seal(codec, payload), 'its token, at a peer,');
      expectThat(sameBytes(there, payload), 'a peer opens its token to other bytes');
      const here = trial.unseal(codec, trial.seal(peer, payload), 'a peer’s token');
      expectThat(sameBytes(here, payload), 'it opens a peer’s token to other bytes');
    }
  }),
  must('CODEC-ROTATED-OPENS', 'After a rotation, what was sealed before still opens.', CONTRACT, async (trial) => {
    const [before, after] = [await trial.create(), await trial.createRotated()];
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      const back = trial.unseal(after, trial.seal(before, payload), 'a token from before the rotation');
      expectThat(sameBytes(back, payload), 'a token from before the rotation opens to other bytes');
      const own = trial.unseal(after, trial.seal(after, payload));
      expectThat(sameBytes(own, payload), 'a token from after the rotation opens to other bytes');
    }
  }),
  should(
    'CODEC-ROTATED-SEALS',
    'After a rotation, new tokens are sealed with the new key.',
    CONTRACT,
    async (trial) => {
      const [before, after] = [await trial.create(), await trial.createRotated()];
      trial.refusal(
        before,
        trial.seal(after, trial.text('state')),
        'a token sealed after the rotation, by who knows only the old key,',
      );
    },
  ),
];
