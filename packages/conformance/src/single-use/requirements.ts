import { must, type Requirement } from '../requirement.ts';

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';

/** What every single-use store is held to, in the order in which it is tried. */
export const SINGLE_USE_REQUIREMENTS: readonly Requirement[] = [
  must('USE-ANSWER', 'claim returns a promise of true or false.', CONTRACT),
  must('USE-ONE-WINNER', 'Of many who claim an id at once, over several stores, one is told true.', CONTRACT),
  must('USE-ONCE', 'A claimed id is refused on every store, whatever end the later claim names.', CONTRACT),
  must('USE-SEPARATE', 'Ids that differ are claimed apart, however alike they are.', CONTRACT),
  must(
    'USE-CLOCK-SKEW',
    'A claim is remembered beyond its end for as long as two clocks may differ.',
    `${CONTRACT}: the margin; F48`,
  ),
  must('USE-PAST-END', 'When end and margin have passed nobody is told true.', `${CONTRACT}; F48`),
  must('USE-UNREACHABLE', 'A backend out of reach tells nobody true.', `${CONTRACT}: a store that cannot tell; F9`),
];
