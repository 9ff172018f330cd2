import { CODEC_SUITE } from '../codec/suite.ts';
import { KEY_WRAPPER_SUITE } from '../key-wrapper/suite.ts';
import type { SuiteName } from '../requirement.ts';
import { RING_STORE_SUITE } from '../ring-store/suite.ts';
import type { Suite } from '../run.ts';
import { SINGLE_USE_SUITE } from '../single-use/suite.ts';

/** All suites, by command name. The `run` function of a suite rejects an invalid target. */
export const SUITES: Readonly<Record<SuiteName, Suite<never, never>>> = {
  codec: CODEC_SUITE,
  'key-wrapper': KEY_WRAPPER_SUITE,
  'ring-store': RING_STORE_SUITE,
  'single-use': SINGLE_USE_SUITE,
};
