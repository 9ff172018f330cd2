/**
 * - `error`: servers do not work, or soon will not.
 * - `warning`: servers work, but something needs attention.
 * - `info`: the check could not be made.
 */
export type Severity = 'ok' | 'info' | 'warning' | 'error';

/** The result of one check. */
export interface Finding {
  /** A stable name for scripts, such as `kms-denied` or `clock`. */
  readonly id: string;
  /** The severity. */
  readonly severity: Severity;
  /** The finding, in one line. Contains no secret. */
  readonly what: string;
  /** The remedy; absent if none is needed. */
  readonly remedy?: string;
}

/** The results of all checks. */
export interface DoctorReport {
  /** True if no finding is an error. */
  readonly healthy: boolean;
  /** The name of the ring. */
  readonly ring: string;
  /** The role whose permissions were checked. */
  readonly role: 'member' | 'reader';
  /** All findings, in the order of the checks. */
  readonly findings: readonly Finding[];
  /** A description of each write by the doctor, and of its removal. A single-use claim expires by itself. */
  readonly wrote: readonly string[];
}

/** A check that passed. */
export function ok(id: string, what: string): Finding {
  return { id, severity: 'ok', what };
}

/** A check that was not possible. */
export function info(id: string, what: string, remedy?: string): Finding {
  return { id, severity: 'info', what, ...(remedy !== undefined && { remedy }) };
}

/** A condition that needs attention. */
export function warning(id: string, what: string, remedy: string): Finding {
  return { id, severity: 'warning', what, remedy };
}

/** A condition that prevents servers from working, now or soon. */
export function error(id: string, what: string, remedy: string): Finding {
  return { id, severity: 'error', what, remedy };
}
