import { type Checks, expectThat } from '../requirement.ts';
import { LONGEST_ID, type SingleUseTrial, soon } from './trial.ts';

export const ARGUMENT_CHECKS: Checks<SingleUseTrial> = {
  'USE-ARGUMENTS': async (trial) => {
    const store = await trial.open();
    const [id, date] = [trial.freshId(), soon()];
    const ids: Readonly<Record<string, unknown>> = {
      'an empty id': '',
      'an id of 257 characters': 'x'.repeat(LONGEST_ID + 1),
      'an id of 100 000 characters': id.repeat(3_000),
      'a number as the id': 1,
      'bytes as the id': Buffer.from(id),
      'an array as the id': [id],
      'an object as the id': { id },
      'no id': undefined,
    };
    const dates: Readonly<Record<string, unknown>> = {
      'an invalid date': new Date(Number.NaN),
      'a number as the date': date.getTime(),
      'a string as the date': date.toISOString(),
      'an object as the date': {},
      'no date': undefined,
    };
    const wrong = [
      ...Object.entries(ids).map(([what, one]) => [what, one, date] as const),
      ...Object.entries(dates).map(([what, one]) => [what, id, one] as const),
      ...Object.entries(ids).map(([what, one]) => [`${what} and a date that has passed`, one, new Date(1)] as const),
    ];
    for (const [what, one, end] of wrong) {
      const outcome = await trial.refused(store, one, end, `a claim with ${what}`);
      const error = 'error' in outcome ? outcome.error : undefined;
      const isRight = error instanceof Error && ['TypeError', 'RangeError'].includes(error.name);
      expectThat(isRight, `a claim with ${what} did not reject with a TypeError or RangeError`);
    }
    expectThat(
      await trial.claim(store, id, 600),
      'an id was refused after an attempt to claim it with an invalid date',
    );
    // An earlier run may have claimed this id, which is only one character long.
    await trial.claim(store, trial.random.pick(Array.from('abcdefghijklmnopqrstuvwxyz')), 1);
    for (const length of [16, 32, 64, 100, 255, LONGEST_ID]) {
      const one = id.repeat(6).slice(-length);
      expectThat(await trial.claim(store, one, 600), `an id of ${length} characters was refused`);
    }
  },
};
