/** `error`: it does not work, or will not. `warning`: it works, and somebody should look. `info`: could not be seen. */
export type Severity = 'ok' | 'info' | 'warning' | 'error';

/** One thing that the doctor looked at. */
export interface Finding {
  /** Names it in scripts: `kms-denied`, `clock`. Stable. */
  readonly id: string;
  readonly severity: Severity;
  /** What was found, in one line. Never secret. */
  readonly what: string;
  /** What to do about it; absent where there is nothing to do. */
  readonly remedy?: string;
}

/** What the doctor found. */
export interface DoctorReport {
  /** Whether nothing is an error. */
  readonly healthy: boolean;
  /** Its name. */
  readonly ring: string;
  /** What the settings make of this process. */
  readonly role: 'member' | 'reader';
  /** What was looked at, in order. */
  readonly findings: readonly Finding[];
  /** What was written and where, for whoever wants to know; nothing of it is left. */
  readonly wrote: readonly string[];
}

export function ok(id: string, what: string): Finding {
  return { id, severity: 'ok', what };
}

export function info(id: string, what: string, remedy?: string): Finding {
  return { id, severity: 'info', what, ...(remedy !== undefined && { remedy }) };
}

export function warning(id: string, what: string, remedy: string): Finding {
  return { id, severity: 'warning', what, remedy };
}

export function error(id: string, what: string, remedy: string): Finding {
  return { id, severity: 'error', what, remedy };
}
