import type { RingDocument } from '@sealring/core/ring';
import { Failure } from '../failure.ts';
import { lineOf } from '../foreign-error.ts';
import { readDocument } from '../ring/document.ts';
import type { Sight } from './recorded-ring.ts';

const LOOK_EVERY_MS = 4_000;
/** Beside refreshEvery: for what a store passes on late, and for clocks. */
const MARGIN_SECONDS = 60;
/** In units of the wait: a store that has lost the revocation by then is told about as one that does not keep it. */
const PATIENCE = 3;
const SILENT_MS = 2_000;
const REPEAT_MS = 15_000;

/** A key that was revoked, and until when anybody minds. */
export interface RevokedKey {
  readonly id: string;
  readonly opensUntil: Date;
}

/** Time as it passes, for tests to make it pass quickly. */
interface Passing {
  /** Milliseconds, monotonic. */
  now(): number;
  /** False once nobody wants to wait any more. */
  wait(ms: number): Promise<boolean>;
}

/** What {@link KeptRevocation.untilKept} needs beside what it is told by {@link KeptRevocation.see}. */
export interface KeepOptions {
  readonly keys: readonly RevokedKey[];
  readonly refreshEverySeconds: number;
  /** Has the member read the ring, and write again what it has lost. May reject. */
  readonly look: () => Promise<void>;
  /** Whether a process that starts on this document takes all of the keys for revoked. Rejects when it cannot tell. */
  readonly proves: (document: string) => Promise<boolean>;
  readonly time: Passing;
  readonly tell: (line: string) => void;
}

/** How long a store has to keep a revocation until it has reached every server. */
export function waitSecondsFor(refreshEverySeconds: number): number {
  return refreshEverySeconds + MARGIN_SECONDS;
}

/**
 * Watches that a store keeps a revocation until every server has read it. A copy or a failover that brings an older ring
 * back would undo it for all that have not: a member that runs writes it again, so one runs meanwhile.
 */
export class KeptRevocation {
  #sight: Sight = { kind: 'absent' };
  #lastWritten: string | undefined;
  #keys: readonly RevokedKey[] = [];
  /** Certificates that are known to be right. */
  readonly #proved = new Set<string>();
  /** Since when every look has found the revocation. */
  #keptSince: number | undefined;
  #losses = 0;
  #now: () => number = () => 0;

  /** Told of everything that the member reads and writes. */
  readonly see = (sight: Sight): void => {
    this.#sight = sight;
    if (sight.kind === 'document' && sight.isOwn) this.#lastWritten = sight.text;
    this.#judge();
  };

  /** @throws {Failure} when the store does not keep it, or nobody waits for that. */
  async untilKept(options: KeepOptions): Promise<void> {
    const { keys, time, tell, look, proves } = options;
    if (keys.length === 0) return;
    const waitMs = waitSecondsFor(options.refreshEverySeconds) * 1_000;
    const began = time.now();
    this.#keys = keys;
    this.#now = () => time.now();
    this.#accept(this.#lastWritten);
    this.#judge();
    let toldAt = began + SILENT_MS - REPEAT_MS;
    let losses = 0;
    for (;;) {
      // What is wrong with it shows in what was seen.
      await look().catch(() => undefined);
      await this.#proveWhatIsUnknown(proves);
      const keptMs = this.#keptSince === undefined ? 0 : time.now() - this.#keptSince;
      const isSeen = this.#keptSince !== undefined && this.#sight.kind === 'document';
      if (isSeen && keptMs >= waitMs) return;
      if (!isSeen && time.now() - began >= PATIENCE * waitMs) throw this.#failure();
      if (this.#losses > losses)
        tell('the store has lost the revocation: it is written again, and the wait begins anew');
      losses = this.#losses;
      if (time.now() - toldAt >= REPEAT_MS) {
        toldAt = time.now();
        const [kept, whole] = [keptMs, waitMs].map((ms) => Math.round(ms / 1_000));
        tell(
          `revoked; waiting until the store has kept it for ${whole} s, so that every server has read it … (${kept} s)`,
        );
      }
      if (!(await time.wait(Math.min(LOOK_EVERY_MS, Math.max(waitMs - keptMs, 10))))) throw new Failure(STOPPED);
    }
  }

  /** A store that does not answer says nothing either way. */
  #judge(): void {
    if (this.#keys.length === 0 || this.#sight.kind === 'failed') return;
    const verdict = this.#sight.kind === 'document' ? this.#verdictOn(this.#sight.text) : 'lost';
    if (verdict === 'lost') this.#lose();
    else if (verdict === 'kept') this.#keptSince ??= this.#now();
  }

  #verdictOn(text: string): 'kept' | 'lost' | 'unknown' {
    const ring = readDocument(text);
    if (ring === undefined) return 'lost';
    let isUnknown = false;
    for (const { id, opensUntil } of this.#keys) {
      const entry = ring.entries.find((key) => key.id === id);
      if (entry === undefined && Date.now() >= opensUntil.getTime()) continue;
      const certificates = certificatesIn(ring, id);
      if (certificates.length === 0) return 'lost';
      if (!certificates.some((one) => this.#proved.has(one))) isUnknown = true;
    }
    return isUnknown ? 'unknown' : 'kept';
  }

  /** Another member may have certified it with a time of its own; somebody who writes the store may have made one up. */
  async #proveWhatIsUnknown(proves: (document: string) => Promise<boolean>): Promise<void> {
    const sight = this.#sight;
    if (sight.kind !== 'document' || this.#verdictOn(sight.text) !== 'unknown') return;
    let isProved: boolean;
    try {
      isProved = await proves(sight.text);
    } catch {
      // The KMS is away: it is asked again at the next look.
      return;
    }
    if (isProved) this.#accept(sight.text);
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
    for (const { id } of this.#keys) for (const one of certificatesIn(ring, id)) this.#proved.add(one);
  }

  #failure(): Failure {
    if (this.#sight.kind !== 'failed') return new Failure(NOT_KEPT);
    return new Failure(
      `the revocation was written, and the store has not answered since: ${lineOf(this.#sight.error)}. Look after the ` +
        'store, and see with "sealring status" that the key is still revoked',
    );
  }
}

const NOT_KEPT =
  'the store does not hold the revocation, although it was written more than once: servers that have not read it go on ' +
  'with the key. Somebody, or a copy that is put back, keeps writing an older ring: end that, take away the right to ' +
  'write the store, and revoke again';

const STOPPED =
  'the revocation was written, and nobody has waited until every server has read it: see with "sealring status" that ' +
  'the key is still revoked';

/** One line for each certificate of the revocation of a key: that of the key itself, else all others. */
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
