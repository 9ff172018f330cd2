import type { RingDocument } from '@sealring/core/ring';
import { Failure } from '../failure.ts';
import { failureCodeOf, lineOf, sectionOn } from '../foreign-error.ts';
import { readDocument } from '../ring/document.ts';
import type { Observation } from './recorded-ring.ts';

const READ_EVERY_MS = 4_000;
/** A margin on top of refreshEverySeconds, for replication delays of the store and for differences between clocks. */
const MARGIN_SECONDS = 60;
/** The command gives up after this multiple of the wait. */
const MAX_WAITS = 3;

/** A key that was revoked, and when it would have expired. */
export interface RevokedKey {
  readonly id: string;
  readonly unsealsUntil: Date;
}

/** The clock and the wait, which tests replace. */
interface Time {
  /** Milliseconds, monotonic. */
  now(): number;
  /** Resolves to false if the wait was interrupted. */
  wait(ms: number): Promise<boolean>;
}

/** Options of {@link KeptRevocation.untilKept}. */
export interface KeepOptions {
  readonly keys: readonly RevokedKey[];
  readonly refreshEverySeconds: number;
  /** Makes the member read the ring, and write again any part that the store has lost. May reject. */
  readonly refresh: () => Promise<void>;
  /** Whether a process that starts with this document treats all of the keys as revoked. Rejects if the KMS fails. */
  readonly verifies: (document: string) => Promise<boolean>;
  readonly time: Time;
  readonly onProgress: (progress: KeepProgress) => void;
}

/** How long the store has kept the revocation so far, how long it must do so, and how many times it has lost it. */
export interface KeepProgress {
  readonly keptSeconds: number;
  readonly waitSeconds: number;
  /** How many times the store has lost the revocation. */
  readonly losses: number;
}

/** How long the store must keep a revocation until every server has read it. */
export function waitSecondsFor(refreshEverySeconds: number): number {
  return refreshEverySeconds + MARGIN_SECONDS;
}

/**
 * Waits until a store has kept a revocation long enough for every server to have read it. A restored copy or a failover
 * can bring back an older ring without the revocation. A member runs during the wait, to write the revocation again.
 */
export class KeptRevocation {
  #last: Observation = { kind: 'absent' };
  #lastWritten: string | undefined;
  #keys: readonly RevokedKey[] = [];
  /** Certificates that were verified. */
  readonly #verified = new Set<string>();
  /** The time since which every read has returned the revocation. */
  #keptSince: number | undefined;
  #losses = 0;
  #now: () => number = () => 0;

  /** Called with everything that the member reads and writes. */
  readonly observe = (observation: Observation): void => {
    this.#last = observation;
    if (observation.kind === 'document' && observation.isOwn) this.#lastWritten = observation.text;
    this.#judge();
  };

  /** @throws {Failure} if the store does not keep the revocation, or the wait was interrupted. */
  async untilKept(options: KeepOptions): Promise<void> {
    const { keys, time, onProgress, refresh, verifies } = options;
    if (keys.length === 0) return;
    const waitSeconds = waitSecondsFor(options.refreshEverySeconds);
    const waitMs = waitSeconds * 1_000;
    const began = time.now();
    this.#keys = keys;
    this.#now = () => time.now();
    this.#accept(this.#lastWritten);
    this.#judge();
    for (;;) {
      // A failure of the store has already been reported to `observe`.
      await refresh().catch(() => undefined);
      await this.#verifyUnknown(verifies);
      const keptMs = this.#keptSince === undefined ? 0 : time.now() - this.#keptSince;
      const isKept = this.#keptSince !== undefined && this.#last.kind === 'document';
      if (isKept && keptMs >= waitMs) return;
      if (!isKept && time.now() - began >= MAX_WAITS * waitMs) throw this.#failure();
      onProgress({ keptSeconds: Math.round(keptMs / 1_000), waitSeconds, losses: this.#losses });
      if (!(await time.wait(Math.min(READ_EVERY_MS, Math.max(waitMs - keptMs, 10))))) {
        throw new Failure('interrupted', INTERRUPTED);
      }
    }
  }

  /** Evaluates the last observation. A failure of the store does not show whether it has kept the revocation. */
  #judge(): void {
    if (this.#keys.length === 0 || this.#last.kind === 'failed') return;
    const verdict = this.#last.kind === 'document' ? this.#verdictOn(this.#last.text) : 'lost';
    if (verdict === 'lost') this.#lose();
    else if (verdict === 'kept') this.#keptSince ??= this.#now();
  }

  #verdictOn(text: string): 'kept' | 'lost' | 'unknown' {
    const ring = readDocument(text);
    if (ring === undefined) return 'lost';
    let isUnknown = false;
    for (const { id, unsealsUntil } of this.#keys) {
      const entry = ring.entries.find((key) => key.id === id);
      if (entry === undefined && Date.now() >= unsealsUntil.getTime()) continue;
      const certificates = certificatesIn(ring, id);
      if (certificates.length === 0) return 'lost';
      if (!certificates.some((one) => this.#verified.has(one))) isUnknown = true;
    }
    return isUnknown ? 'unknown' : 'kept';
  }

  /**
   * Verifies an unknown certificate: another member may have certified the revocation with another time, or someone who
   * can write to the store may have forged it.
   */
  async #verifyUnknown(verifies: (document: string) => Promise<boolean>): Promise<void> {
    const last = this.#last;
    if (last.kind !== 'document' || this.#verdictOn(last.text) !== 'unknown') return;
    let isVerified: boolean;
    try {
      isVerified = await verifies(last.text);
    } catch {
      // The KMS failed: the next read tries again.
      return;
    }
    if (isVerified) this.#accept(last.text);
    else this.#lose();
    this.#judge();
  }

  #lose(): void {
    if (this.#keptSince !== undefined) this.#losses += 1;
    this.#keptSince = undefined;
  }

  #accept(text: string | undefined): void {
    const ring = text === undefined ? undefined : readDocument(text);
    if (ring === undefined) return;
    for (const { id } of this.#keys) for (const one of certificatesIn(ring, id)) this.#verified.add(one);
  }

  #failure(): Failure {
    if (this.#last.kind !== 'failed') return new Failure('revocation-lost', NOT_KEPT);
    return new Failure(
      failureCodeOf(this.#last.error),
      `the revocation was written, but the store has failed since then: ${lineOf(this.#last.error)}. Repair the store, and ` +
        'check with "sealring status" that the key is still revoked',
      sectionOn(this.#last.error),
    );
  }
}

const NOT_KEPT =
  'the store does not keep the revocation, although it was written more than once: servers that have not read it still ' +
  'use the key. Something keeps writing an older ring, such as a restored copy. Stop it, remove its permission to write to ' +
  'the store, and revoke again';

const INTERRUPTED =
  'the revocation was written, but the wait until every server has read it was interrupted. Check with "sealring status" ' +
  'that the key is still revoked';

/** One line for each certificate of a revocation; only the revoked key's own certificate if there is one. */
function certificatesIn(ring: RingDocument, id: string): readonly string[] {
  const revoked = ring.entries.find((key) => key.id === id)?.revoked;
  if (revoked === undefined) return [];
  const lines = [...revoked.by].map(([by, mac]) => ({
    by,
    line: [id, revoked.at, by, Buffer.from(mac).toString('base64url')].join(' '),
  }));
  const own = lines.filter(({ by }) => by === id);
  return (own.length > 0 ? own : lines).map(({ line }) => line);
}
