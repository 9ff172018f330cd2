import { ageMs, type Deadline, hasPassed, later, type Moment, uniform } from '../base/clock.ts';
import { encodeDocument, type RingDocument } from '../ring/document.ts';
import type { RingKey, RingSnapshot } from '../ring/snapshot.ts';
import { documentOf, lacks } from '../ring/written-document.ts';
import type { MemberParts } from './parts.ts';

const MS = 1_000;
/**
 * The longest random wait before a document that lacks something is overwritten. The wait is random, because a single
 * write by any of the members is enough.
 */
const REPAIR_WAIT_MS = 5_000;
/** A foreign document is read twice, at least this far apart, before it is overwritten. */
const FOREIGN_WAIT_MS = 5_000;
const CONTESTED_WINDOW_MS = 3_600_000;
/** More foreign documents than this, overwritten within the window, mean that two fleets use one place in the store. */
const CONTESTED_AFTER = 3;

type Parts = Pick<MemberParts, 'ring' | 'policy' | 'random' | 'view'>;

/** Decides whether and when to overwrite a document that lacks facts that this member knows. */
export class Repairs {
  readonly #o: Parts;
  #dueAt: Deadline | undefined;
  /** The last document that lacked no known fact. */
  #wholeDocument: RingDocument | undefined;
  #wholeSnapshot: RingSnapshot | undefined;
  #repairedAt: Moment | undefined;
  #overwritten: readonly Moment[] = [];
  #isForeign = false;

  constructor(parts: Parts) {
    this.#o = parts;
  }

  /** When a repair is due; undefined while no fact is missing from the store. */
  get dueAt(): Deadline | undefined {
    return this.#dueAt;
  }

  /** Whether the store holds something other than a document of this ring. */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  /** Whether other content keeps appearing in this ring's place in the store. */
  isContested(now: Moment): boolean {
    return this.#overwritten.filter((at) => ageMs(at, now) < CONTESTED_WINDOW_MS).length > CONTESTED_AFTER;
  }

  /** Whether to overwrite the content that was just read. If so, the repair counts as made. */
  take(): boolean {
    const now = this.#o.view.now();
    if (this.#dueAt === undefined || !hasPassed(this.#dueAt, now)) return false;
    this.#dueAt = undefined;
    this.#repairedAt = now;
    if (this.#isForeign) this.#overwritten = [...this.#overwritten, now].slice(-(CONTESTED_AFTER + 1));
    return true;
  }

  /**
   * Notes that a write did not reach the store: it is repeated after the backoff of a failing store, not only at the
   * next refresh.
   */
  wasLost(): void {
    this.#repairedAt = undefined;
  }

  /** Checks the content that was just read. `isForeign` means that it is not a document of this ring. */
  consider(document: RingDocument | undefined, now: Moment, isForeign: boolean = this.#isForeign): void {
    this.#isForeign = isForeign;
    const { snapshot } = this.#o.view;
    // As time passes, the number of missing facts can only fall, so the result holds until the document or the snapshot
    // changes.
    const isWhole = document === this.#wholeDocument && snapshot === this.#wholeSnapshot;
    if (isWhole || !this.#isWorthWriting(document, snapshot, now)) {
      this.#dueAt = undefined;
      this.#wholeDocument = document;
      this.#wholeSnapshot = snapshot;
      return;
    }
    if (this.#dueAt !== undefined) return;
    const wait = REPAIR_WAIT_MS * uniform(this.#o.random) + (isForeign ? FOREIGN_WAIT_MS : 0);
    const sinceLast = this.#repairedAt === undefined ? Number.POSITIVE_INFINITY : ageMs(this.#repairedAt, now);
    this.#dueAt = later(now, Math.max(wait, this.#o.policy.refreshEverySeconds * MS - sinceLast));
  }

  /**
   * Whether the document lacks facts that a write would add. Entries without a valid voucher are not a reason to write,
   * and neither is a document that would be written unchanged.
   */
  #isWorthWriting(document: RingDocument | undefined, known: RingSnapshot, now: Moment): boolean {
    const { ring, view } = this.#o;
    const read = document ?? { ring, claim: undefined, entries: [] };
    const judgement = view.judgement(now);
    if (!lacks(read, known, judgement)) return false;
    const isRemovable = (key: RingKey): boolean => view.isRemovable(key, now);
    const wanted = documentOf(known, read, { ring, past: view.past, isRemovable });
    // A fact that a full document has no room for would still be missing afterwards.
    const ids = new Set(wanted.entries.map(({ id }) => id));
    const written = known.keys.filter(({ id }) => ids.has(id));
    if (!lacks(read, known, judgement, written)) return false;
    return encodeDocument(wanted) !== encodeDocument(read);
  }
}
