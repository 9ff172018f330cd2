import { type CheckedRequirement, NotApplicable } from '../requirement.ts';
import type { CodecTrial } from './trial.ts';

/** What cannot be seen of a codec that is asked through a pipe, and why. */
export const UNSEEN_THROUGH_PIPE: Readonly<Record<string, string>> = {
  'CODEC-SYNCHRONOUS': 'an answer that was waited for looks like any other',
  'CODEC-ROUNDTRIP-VIEW': 'the program makes the buffer that it seals itself',
  'CODEC-CALLERS-BUFFER': 'the program makes the buffer that it seals itself',
  'CODEC-OWN-RESULT': 'only a copy of the bytes arrives here',
  // Many languages cannot even pass such a value to a codec, and would fail in reading the request.
  'CODEC-NOT-TEXT': 'the protocol carries tokens as text',
  'CODEC-NOT-TEXT-CLASS': 'the protocol carries tokens as text',
  'CODEC-QUIET': 'what the program prints may not be the codec’s',
  'CODEC-NO-TIMERS': 'they are in another process',
  'CODEC-ENDS': 'they are in another process',
  'CODEC-HUGE-QUICK': 'the way through the pipe takes longer than the refusal',
  'CODEC-NO-GLOBALS': 'they are in another process',
  'CODEC-NO-EXIT': 'a program that ends is found by every requirement',
  'CODEC-TIMING': 'the way through the pipe takes longer than the refusal',
};

/** The same check, for codecs that it can be tried on. */
export function unlessUnseen(check: CheckedRequirement<CodecTrial>): CheckedRequirement<CodecTrial> {
  const why = UNSEEN_THROUGH_PIPE[check.id];
  if (why === undefined) return check;
  return {
    ...check,
    run(trial) {
      if (trial.subject.throughPipe) throw new NotApplicable(`cannot be seen through a pipe: ${why}`);
      return check.run(trial);
    },
  };
}
