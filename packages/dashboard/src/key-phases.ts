import { hashedKeyId, type KeyHealth } from '@sealring/core';

/** A key of the ring, with the time of its revocation. */
export interface RingKey extends KeyHealth {
  /** Time of the revocation, if known; undefined for a key that is not revoked. */
  readonly revokedAt?: Date | undefined;
}

/**
 * Start and end of a phase, in milliseconds since the epoch. The phase is empty if `until` is not later than `from`.
 */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/** The life of a key: its past, and its future if there is no further rotation or revocation. */
export interface KeyPhases {
  /** Published, but not active yet. */
  readonly waits: Span;
  /** Seals new tokens. */
  readonly seals: Span;
  /** A newer key seals, but this key seals again if the newer one is revoked. */
  readonly reserve: Span;
  /** Only unseals. */
  readonly unseals: Span;
}

/** The phases of every key, in the order of `keys`. A revocation ends a key at once. */
export function keyPhases(keys: readonly RingKey[], now: Date): readonly KeyPhases[] {
  const lives = keys.map((key) => lifeOf(key, now.getTime()));
  return lives.map((life) => {
    const { created, starts, sealEnd, end } = life;
    // A newer key takes over only if it ever seals, which it does not if it was revoked before it became active.
    const takeovers = lives
      .filter((other) => isNewer(other, life) && other.starts < other.sealEnd)
      .map((other) => Math.max(other.starts, starts));
    const replaced = Math.min(sealEnd, ...takeovers);
    return {
      waits: { from: created, until: Math.min(starts, end) },
      seals: { from: starts, until: replaced },
      reserve: { from: Math.max(starts, replaced), until: sealEnd },
      unseals: { from: Math.max(created, sealEnd), until: end },
    };
  });
}

interface Life {
  readonly id: string;
  readonly activates: number;
  readonly created: number;
  readonly starts: number;
  readonly sealEnd: number;
  readonly end: number;
}

function lifeOf(key: RingKey, nowMs: number): Life {
  const [created, activates] = [key.created.getTime(), key.activates.getTime()];
  // The revocation time in the document is for information only, so it is kept within the life of the key.
  const revoked = Math.min(nowMs, Math.max(created, key.revokedAt?.getTime() ?? nowMs));
  const end = Math.min(key.unsealsUntil.getTime(), key.state === 'revoked' ? revoked : Number.POSITIVE_INFINITY);
  return {
    id: key.id,
    activates,
    created,
    // A key that seals at once has an activation time before its creation, so that no clock has to wait for it.
    starts: Math.max(created, activates),
    sealEnd: Math.min(key.sealsUntil.getTime(), end),
    end,
  };
}

/** Orders keys as members do: by the time of activation, then by id. */
function isNewer(a: Life, b: Life): boolean {
  return a.activates === b.activates ? a.id > b.id : a.activates > b.activates;
}

/**
 * The value of the metric `sealring.ring.sealing_key.fingerprint` for a key: the first 6 bytes of its hashed id, as a
 * number.
 */
export function keyFingerprint(id: string): number {
  return Buffer.from(hashedKeyId(id), 'base64url').readUIntBE(0, 6);
}
