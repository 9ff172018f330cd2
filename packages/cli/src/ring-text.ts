/** One key of a ring document, as it says of itself. */
export interface RingTextKey {
  readonly id: string;
  readonly created: number;
  readonly activates: number;
  readonly sealsUntil: number;
  readonly opensUntil: number;
  readonly isRevoked: boolean;
  readonly wraps: readonly { readonly provider: string; readonly keyId: string }[];
}

/** What a ring document says, before anybody has checked who wrote it. To report, never to act on. */
export interface RingText {
  readonly ring: string;
  readonly epoch: number;
  readonly keys: readonly RingTextKey[];
}

/** Reads the first line of a ring document (docs/guides/wire-format.md). Undefined where it is none. */
export function readRingText(document: string): RingText | undefined {
  const body = parsed(document.split('\n', 1)[0] ?? '');
  const { format, ring, epoch, keys } = objectOf(body);
  if (format !== 'sealring/ring/1' || typeof ring !== 'string' || typeof epoch !== 'number' || !Array.isArray(keys)) {
    return undefined;
  }
  const read = keys.map(keyOf);
  return read.every((key) => key !== undefined) ? { ring, epoch, keys: read } : undefined;
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
    isRevoked: revoked !== undefined,
    wraps: wraps.map((wrap) => {
      const { provider, keyId } = objectOf(wrap);
      return { provider: String(provider), keyId: String(keyId) };
    }),
  };
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

/** The keys that may still open a token, oldest first. */
export function liveKeysOf(ring: RingText, nowMs: number): readonly RingTextKey[] {
  return ring.keys
    .filter((key) => !key.isRevoked && nowMs < key.opensUntil)
    .toSorted((a, b) => a.activates - b.activates || (a.id < b.id ? -1 : 1));
}
