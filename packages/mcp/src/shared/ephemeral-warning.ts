import { warnOnce } from './warn-once.ts';

/** Warns once per process that tokens do not outlive it: code `SEALRING_EPHEMERAL`. */
export function warnEphemeral(): void {
  warnOnce(
    'SEALRING_EPHEMERAL',
    'requestState is sealed with a key that exists only in this process: no token outlives the process',
  );
}
