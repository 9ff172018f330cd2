import type { KeyWrapper, KmsCodecOptions, RingStore } from '@sealring/core';

/** A place beside the ring that `doctor` may write to, to see the compare-and-swap of the store at work. */
export interface SealringProbe {
  /** A ring store of the same kind in another place: another key, object, row or file. Must be empty. */
  readonly ring: RingStore;
  /** Deletes what is in that place: a ring store itself deletes nothing. */
  remove(): Promise<void>;
}

/**
 * What `sealring` works on: the options that the servers give to `createKmsCodec`, made of the same real objects. The
 * default export of `sealring.config.js`, `.mjs` or `.ts`.
 */
export interface SealringConfig
  extends Pick<
    KmsCodecOptions,
    | 'keyWrapper'
    | 'ring'
    | 'ringName'
    | 'role'
    | 'policy'
    | 'wrapQuorum'
    | 'acceptKeysCreatedAfter'
    | 'dangerouslyTrustStore'
    | 'clock'
  > {
  /** Where `doctor` tries compare-and-swap for real. Without it a swap that must be refused is all that is tried. */
  readonly probe?: SealringProbe;
}

/** A configuration that is there, where it came from, and how to let go of it. */
export interface Settings {
  readonly config: SealringConfig;
  /** For people: `sealring.config.mjs`, `the environment`. */
  readonly origin: string;
  close(): Promise<void>;
}

/** What of a configuration is for core: all but the probe, which only the doctor knows. */
export function codecOptionsOf(config: SealringConfig): Omit<SealringConfig, 'probe'> {
  const { probe: _, ...options } = config;
  return options;
}

/** The key wrappers, as a list. */
export function keyWrappersOf({ keyWrapper }: SealringConfig): readonly KeyWrapper[] {
  return Array.isArray(keyWrapper) ? keyWrapper : [keyWrapper as KeyWrapper];
}

/** The name of the ring, with core's default. */
export function ringNameOf({ ringName }: SealringConfig): string {
  return ringName ?? 'default';
}

/** Lets go of the ring store and the key wrappers, whatever else fails. */
export async function closeConfig(config: Partial<SealringConfig>): Promise<void> {
  const wrappers = Array.isArray(config.keyWrapper) ? config.keyWrapper : [config.keyWrapper];
  const open = [config.ring, config.probe?.ring, ...wrappers] as readonly ({ close?(): Promise<void> } | undefined)[];
  await Promise.allSettled(open.map(async (one) => one?.close?.()));
}
