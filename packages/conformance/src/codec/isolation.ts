import { type Check, expectThat } from '../requirement.ts';
import { text } from './payloads.ts';
import { type CodecTrial, sameBytes } from './trial.ts';

const ROUNDS = 20;

/** Who opens whose tokens. */
export const ISOLATION_CHECKS: readonly Check<CodecTrial>[] = [
  {
    id: 'CODEC-STRANGER',
    async run(trial) {
      const [codec, stranger] = [await trial.create(), await trial.createStranger()];
      for (let i = 0; i < ROUNDS; i++) {
        const payload = trial.random.bytes(1 + trial.random.below(40));
        trial.refusal(codec, trial.seal(stranger, payload), 'a stranger’s token');
        trial.refusal(stranger, trial.seal(codec, payload), 'its token, at a stranger,');
      }
    },
  },
  {
    id: 'CODEC-PEER',
    async run(trial) {
      const [codec, peer] = [await trial.create(), await trial.createPeer()];
      for (let i = 0; i < ROUNDS; i++) {
        const payload = trial.random.bytes(trial.random.below(40));
        const there = trial.unseal(peer, trial.seal(codec, payload), 'its token, at a peer,');
        expectThat(sameBytes(there, payload), 'a peer opens its token to other bytes');
        const here = trial.unseal(codec, trial.seal(peer, payload), 'a peer’s token');
        expectThat(sameBytes(here, payload), 'it opens a peer’s token to other bytes');
      }
    },
  },
  {
    id: 'CODEC-ROTATED-OPENS',
    async run(trial) {
      const [before, after] = [await trial.create(), await trial.createRotated()];
      const payload = text('sealed before the rotation');
      const back = trial.unseal(after, trial.seal(before, payload), 'a token from before the rotation');
      expectThat(sameBytes(back, payload), 'a token from before the rotation opens to other bytes');
      const own = trial.unseal(after, trial.seal(after, payload));
      expectThat(sameBytes(own, payload), 'a token from after the rotation opens to other bytes');
    },
  },
  {
    id: 'CODEC-ROTATED-SEALS',
    async run(trial) {
      const [before, after] = [await trial.create(), await trial.createRotated()];
      trial.refusal(
        before,
        trial.seal(after, text('state')),
        'a token sealed after the rotation, by who knows only the old key,',
      );
    },
  },
];
