let warned = false;

/** Says once per process that state dies with it: code `SEALRING_EPHEMERAL`. */
export function warnEphemeral(): void {
  if (warned) return;
  warned = true;
  process.emitWarning('requestState is sealed under a key of this process only: it dies with the process', {
    type: 'SealringWarning',
    code: 'SEALRING_EPHEMERAL',
  });
}
