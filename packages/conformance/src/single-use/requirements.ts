import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';
const { must, should } = requiredBy(CONTRACT);

/** The requirements for single-use stores, in the order of the checks. */
export const SINGLE_USE_TABLE: RequirementTable = {
  'USE-ANSWER': must('claim returns a promise of true or false.'),
  'USE-ONE-WINNER': must('Of many concurrent claims of an id across several stores, exactly one resolves to true.'),
  'USE-ONCE': must('A claimed id is refused on every store, even if a later claim has a different end.'),
  'USE-MANY': must('A store accepts claims of a thousand ids, and no later claim makes it forget one.'),
  'USE-SEPARATE': must('Ids that differ are claimed independently, however similar they are.'),
  'USE-CLOCK-SKEW': must(
    'A store remembers a claim after it expires, for as long as two clocks may differ.',
    `${CONTRACT}: the margin; F48`,
  ),
  'USE-PAST-END': must('After the end and the margin, no claim resolves to true.', `${CONTRACT}; F48`),
  'USE-ARGUMENTS': must(
    'claim rejects an invalid date or an id that is not a string of 1 to 256 characters with a TypeError or RangeError.',
  ),
  'USE-CALLERS-DATE': should('claim does not modify its date or read it after returning.'),
  'USE-CLOSED': must('After a store is closed, all stores still refuse the ids that it claimed.'),
  'USE-INSTANCE-CLOSES': must(
    'Closing a store completes: the target’s close is called if it has one, and the store’s own close otherwise.',
  ),
  // These come last, because a backend may not recover.
  'USE-UNREACHABLE': must(
    'While the backend is unreachable, no claim resolves to true.',
    `${CONTRACT}: a store that cannot determine whether an id was claimed; F9`,
  ),
  'USE-RECOVERS': must('After an outage, the store works again and still has its claims.', `${CONTRACT}; F31`),
  'USE-ERROR': must(
    'A claim with an unknown outcome resolves to false, or rejects with a SingleUseStoreError with a fixed message.',
  ),
};
