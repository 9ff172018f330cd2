import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import { expectThat, must, NotApplicable } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import { DATE, type RingStoreRequirement } from './requirement.ts';
import { type RingStoreTrial } from './trial.ts';

/** Less than a quarter of an hour, by which the nearest time zones differ. */
const FURTHEST_MS = 10 * 60 * 1_000;
/** Dates of HTTP are whole seconds: after this one has passed, milliseconds. */
const A_SECOND_MS = 1_200;

/** The date that the service puts on its answers. */
export const SERVICE_DATE_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-SERVICE-DATE',
    'Every read calls onServiceDate before it resolves, or none does, as the target says.',
    `${DATE}; F13`,
    async (trial) => {
      const declared = trial.subject.supports.serviceDate;
      if (declared === undefined) throw new NotApplicable('supports.serviceDate is not declared');
      for (const { what, dates } of await reportedDates(trial)) {
        if (!declared) expectThat(dates.length === 0, `supports.serviceDate is false, and ${what} reported a date`);
        else if (what.startsWith('a read')) expectThat(dates.length > 0, `${what} resolved without a date`);
      }
    },
  ),
  must(
    'RING-SERVICE-DATE-VALID',
    'A reported date is a Date, of the answer, at most ten minutes from this clock.',
    `${DATE}; F13`,
    async (trial) => {
      const reported = await reportedDates(trial);
      for (const { what, dates } of reported) {
        for (const date of dates) {
          expectThat(types.isDate(date), `${what} reported ${kindOf(date)}, not a Date`);
          // For seconds taken as milliseconds, for a local time taken as UTC, and for dates that are none.
          const isNear = Math.abs(date.getTime() - Date.now()) < FURTHEST_MS;
          const shown = Number.isNaN(date.getTime()) ? 'an invalid date' : date.toISOString();
          expectThat(isNear, `${what} reported ${shown}, at ${new Date().toISOString()} of this clock`);
        }
      }
      if (reported.every(({ dates }) => dates.length === 0)) throw new NotApplicable('the store reported no date');
      await expectProgress(trial);
    },
  ),
];

/** A date that stands still is not that of the answer: of the document, of the connection, or of a cache. */
async function expectProgress(trial: RingStoreTrial): Promise<void> {
  const [absent, present] = [await trial.open(), await trial.open()];
  await trial.write(present, 'one', undefined);
  const looks = { 'a read of an absent ring': absent, 'a read of a ring': present };
  const first = new Map<string, unknown>();
  for (const waitMs of [0, A_SECOND_MS]) {
    await pause(waitMs);
    for (const [what, store] of Object.entries(looks)) {
      let last: unknown;
      await trial.read(store, what, { onServiceDate: (date) => void (last = date) });
      if (waitMs === 0) first.set(what, last);
      const before = first.get(what);
      if (waitMs === 0 || !types.isDate(last) || !types.isDate(before)) continue;
      const isLater = last.getTime() > before.getTime();
      expectThat(isLater, `${what} reported ${last.toISOString()} again, ${A_SECOND_MS} ms later`);
    }
  }
}

/** What each call had reported when it resolved. */
async function reportedDates(
  trial: RingStoreTrial,
): Promise<readonly { readonly what: string; readonly dates: readonly unknown[] }[]> {
  const stores = await trial.openPair();
  const reported: { readonly what: string; readonly dates: readonly unknown[] }[] = [];
  const noting = async (what: string, call: (onServiceDate: (date: Date) => void) => Promise<unknown>) => {
    const dates: unknown[] = [];
    await call((date) => void dates.push(date));
    reported.push({ what, dates: [...dates] });
  };
  const read = async (what: string): Promise<void> => {
    for (const store of [...stores, ...stores]) {
      await noting(what, (onServiceDate) => trial.read(store, what, { onServiceDate }));
    }
  };
  await read('a read of an absent ring');
  let revision: string | undefined;
  for (const what of ['a write that creates a ring', 'a write']) {
    await noting(what, async (onServiceDate) => {
      revision = await trial.write(stores[0], what, revision, what, { onServiceDate });
    });
  }
  await read('a read');
  return reported;
}
