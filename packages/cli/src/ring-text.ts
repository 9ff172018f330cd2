/** One key of a ring document, as it says of itself. */
export interface RingTextKey {
  readonly id: string;
  readonly created: number;
  readonly activates: number;
  readonly sealsUntil: number;
  readonly opensUntil: number;
  /** What is said of its revocation; undefined where none is claimed. */
  readonly revoked: RingTextRevocation | undefined;
  readonly wraps: readonly RingTextWrap[];
}

interface RingTextWrap {
  readonly provider: string;
  readonly keyId: string;
  /** As it is stored: base64url. */
  readonly wrapped: string;
}

/** A revocation as it is claimed: whether a certificate proves it, only a holder of keys can tell. */
interface RingTextRevocation {
  readonly at: string;
  /** Certificates, by the id of the key that is said to have made them. */
  readonly by: Readonly<Record<string, string>>;
}

/** What a ring document says, before anything of it is proved. To report, never to act on. */
export interface RingText {
  readonly ring: string;
  readonly keys: readonly RingTextKey[];
}

/** Keys that a ring has room for, and from how many on people are told. Core does not export them. */
export const MAX_RING_KEYS = 64;
export const MANY_RING_KEYS = 48;

/** Reads a ring document (docs/guides/wire-format.md). Undefined where it is none. */
export function readRingText(document: string): RingText | undefined {
  const { format, ring, keys } = objectOf(parsed(document));
  if (format !== 'sealring/ring/1' || typeof ring !== 'string' || !Array.isArray(keys)) return undefined;
  const read = keys.map(keyOf);
  return read.every((key) => key !== undefined) ? { ring, keys: read } : undefined;
}

function keyOf(value: unknown): RingTextKey | undefined {
  const { id, created, activates, sealsUntil, opensUntil, revoked, wraps } = objectOf(value);
  const times = [created, activates, sealsUntil, opensUntil].map((time) => Date.parse(String(time)));
  const [at = Number.NaN, from = Number.NaN, seals = Number.NaN, opens = Number.NaN] = times;
  if (typeof id !== 'string' || !times.every(Number.isFinite) || !Array.isArray(wraps)) return undefined;
  return {
    id,
    created: at,
    activates: from,
    sealsUntil: seals,
    opensUntil: opens,
    revoked: revoked === undefined ? undefined : revocationOf(revoked),
    wraps: wraps.map((wrap) => {
      const { provider, keyId, wrapped } = objectOf(wrap);
      return { provider: String(provider), keyId: String(keyId), wrapped: String(wrapped) };
    }),
  };
}

function revocationOf(value: unknown): RingTextRevocation {
  const { at, by } = objectOf(value);
  const certificates = Object.entries(objectOf(by)).map(([id, mac]) => [id, String(mac)]);
  return { at: String(at), by: Object.fromEntries(certificates) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** The keys whose own times let them open a token, revoked or not, oldest first. */
export function unendedKeysOf(ring: RingText, nowMs: number): readonly RingTextKey[] {
  return ring.keys
    .filter((key) => nowMs < key.opensUntil)
    .toSorted((a, b) => a.activates - b.activates || (a.id < b.id ? -1 : 1));
}

/** Ids of the keys that the document calls revoked, and that who has opened the ring does not: nothing proves it. */
export function unprovedRevocationsOf(
  ring: RingText,
  keys: readonly { readonly id: string; readonly state: string }[],
  nowMs: number,
): readonly string[] {
  const proved = new Set(keys.filter(({ state }) => state === 'revoked').map(({ id }) => id));
  return unendedKeysOf(ring, nowMs)
    .filter(({ id, revoked }) => revoked !== undefined && !proved.has(id))
    .map(({ id }) => id);
}
