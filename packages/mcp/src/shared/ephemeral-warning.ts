import { warnOnce } from './warn-once.ts';

/** Says once per process that state dies with it: code `SEALRING_EPHEMERAL`. */
export function warnEphemeral(): void {
  warnOnce('SEALRING_EPHEMERAL', 'requestState is sealed under a key of this process only: it dies with the process');
}
