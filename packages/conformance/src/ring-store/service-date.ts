import { types } from 'node:util';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { kindOf, type RingStoreTrial } from './trial.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

/** The date that the service puts on its answers. */
export const SERVICE_DATE_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-SERVICE-DATE',
    async run(trial) {
      const declared = trial.subject.supports.serviceDate;
      if (declared === undefined) throw new NotApplicable('supports.serviceDate is not declared');
      for (const [what, dates] of Object.entries(await toldDates(trial))) {
        if (!declared) expectThat(dates.length === 0, `supports.serviceDate is false, and ${what} told a date`);
        else if (what.startsWith('a read')) expectThat(dates.length > 0, `${what} told no date`);
      }
    },
  },
  {
    id: 'RING-SERVICE-DATE-VALID',
    async run(trial) {
      const told = Object.entries(await toldDates(trial));
      for (const [what, dates] of told) {
        for (const date of dates) {
          expectThat(types.isDate(date), `${what} told ${kindOf(date)}, no Date`);
          // No clock is a day wrong: this is for seconds taken as milliseconds, and for dates that are none.
          const isOfToday = Math.abs(date.getTime() - Date.now()) < DAY_MS;
          expectThat(
            isOfToday,
            `${what} told ${Number.isNaN(date.getTime()) ? 'an invalid date' : date.toISOString()}`,
          );
        }
      }
      if (told.every(([, dates]) => dates.length === 0)) throw new NotApplicable('the store told no date');
    },
  },
];

/** What each call told. */
async function toldDates(trial: RingStoreTrial): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const store = await trial.open();
  const told: Record<string, unknown[]> = {};
  const noting = (what: string) => {
    const dates: unknown[] = [];
    told[what] = dates;
    return { onServiceDate: (date: Date) => void dates.push(date) };
  };
  await trial.read(store, 'a read', noting('a read of an absent ring'));
  const revision = await trial.write(store, 'one', undefined, 'a write', noting('a foundation'));
  await trial.write(store, 'two', revision, 'a write', noting('a write'));
  await trial.read(store, 'a read', noting('a read'));
  return told;
}
