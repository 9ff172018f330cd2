import { hashedKeyId, type KeyHealth } from '@sealring/core';
import type { RingStatus, Trouble } from '../ring-status.ts';
import type { Round } from './history.ts';
import type { MemberHealth } from './member.ts';

/** All that the page shows. Key ids are hashed in it: a page is easily photographed. */
export interface View {
  readonly ring: string;
  readonly store: string;
  readonly at: Date;
  readonly everySeconds: number;
  readonly keys: readonly ViewKey[];
  readonly nextRotation: Date | undefined;
  /** Why the ring could not be read this time. */
  readonly trouble: string | undefined;
  /** What needs somebody, with what to do. */
  readonly problems: readonly Trouble[];
  readonly members: readonly ViewMember[];
  readonly rounds: readonly Round[];
}

export interface ViewKey extends Pick<KeyHealth, 'state' | 'created' | 'activates' | 'sealsUntil' | 'opensUntil'> {
  readonly hash: string;
  readonly fingerprint: number;
  readonly seals: boolean;
}

export interface ViewMember {
  readonly name: string;
  /** Why it did not answer. */
  readonly failure: string | undefined;
  readonly health: MemberHealth | undefined;
}

/** Hashes the ids, as the events do. */
export function viewKeysOf({ keys, sealingKey }: RingStatus): readonly ViewKey[] {
  return keys.map(({ id, state, created, activates, sealsUntil, opensUntil }) => {
    const hash = hashedKeyId(id);
    // The number that members export; see fingerprint in @sealring/otel.
    const fingerprint = Buffer.from(hash, 'base64url').readUIntBE(0, 6);
    return { hash, fingerprint, seals: id === sealingKey, state, created, activates, sealsUntil, opensUntil };
  });
}
