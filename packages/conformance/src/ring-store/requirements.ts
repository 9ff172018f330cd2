import type { Requirement } from '../requirement.ts';
import { ABORT_REQUIREMENTS } from './abort.ts';
import { ANSWER_REQUIREMENTS } from './answers.ts';
import { ARGUMENT_REQUIREMENTS } from './call-arguments.ts';
import { CONTEST_REQUIREMENTS } from './contests.ts';
import { DOCUMENT_REQUIREMENTS } from './documents.ts';
import { EXPECTATION_REQUIREMENTS } from './expectations.ts';
import { NAME_REQUIREMENTS } from './names.ts';
import { OUTAGE_REQUIREMENTS } from './outages.ts';
import { READING_REQUIREMENTS } from './reading.ts';
import type { RingStoreRequirement } from './requirement.ts';
import { REVISION_REQUIREMENTS } from './revisions.ts';
import { SERVICE_DATE_REQUIREMENTS } from './service-date.ts';
import { SIZE_REQUIREMENTS } from './sizes.ts';
import { WATCH_REQUIREMENTS } from './watch.ts';

/** Every requirement with its check, in the order in which they are tried. */
export const CHECKED_RING_STORE_REQUIREMENTS: readonly RingStoreRequirement[] = [
  ...ANSWER_REQUIREMENTS,
  ...DOCUMENT_REQUIREMENTS,
  ...NAME_REQUIREMENTS,
  ...SIZE_REQUIREMENTS,
  ...REVISION_REQUIREMENTS,
  ...EXPECTATION_REQUIREMENTS,
  ...CONTEST_REQUIREMENTS,
  ...READING_REQUIREMENTS,
  ...ABORT_REQUIREMENTS,
  ...OUTAGE_REQUIREMENTS,
  ...SERVICE_DATE_REQUIREMENTS,
  ...WATCH_REQUIREMENTS,
  ...ARGUMENT_REQUIREMENTS,
];

/** What every ring store is held to, in the order in which it is tried. */
export const RING_STORE_REQUIREMENTS: readonly Requirement[] = CHECKED_RING_STORE_REQUIREMENTS.map(
  ({ id, level, text, source }) => ({ id, level, text, source }),
);
