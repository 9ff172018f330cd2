import type { Clock, RandomSource } from '../base/clock.ts';
import type { Closing } from '../base/closing.ts';
import type { KeyWrapper } from '../contracts/key-wrapper.ts';
import type { RingStore } from '../contracts/ring-store.ts';
import type { KeyWraps } from '../kms/wraps.ts';
import type { ResolvedPolicy } from '../ring/policy.ts';
import type { StoredRingDocument } from '../stores/stored-ring.ts';
import type { Founding } from './founding.ts';
import type { RingClock } from './ring-clock.ts';
import type { RingSync } from './sync.ts';
import type { RingView } from './view.ts';
import type { RingWriter } from './writer.ts';

/**
 * The configuration and the parts of a member. Each part receives only the properties that it needs. No part starts
 * anything by itself.
 */
export interface MemberParts {
  /** The ring's name. */
  readonly ring: string;
  readonly policy: ResolvedPolicy;
  readonly role: 'member' | 'reader';
  readonly create: 'if-absent' | 'now' | 'never';
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly closing: Closing;
  readonly wrappers: readonly KeyWrapper[];
  readonly store: RingStore;
  readonly stored: StoredRingDocument;
  readonly wraps: KeyWraps;
  readonly view: RingView;
  readonly sync: RingSync;
  readonly writer: RingWriter;
  readonly founding: Founding;
  readonly ringClock: RingClock;
  /** 32 bytes from the kernel's random device; empty if there is no such device. */
  readonly readKernelEntropy: () => Promise<Uint8Array>;
}
