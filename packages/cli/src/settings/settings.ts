import type { KeyWrapper, KmsCodecOptions, RingStore, SingleUseStore } from '@sealring/core';

/** A location next to the ring, to which `doctor` may write in order to test the store's compare-and-swap. */
export interface SealringProbe {
  /** A ring store of the same kind for another key, object, row or file, which must be empty. */
  readonly ring: RingStore;
  /** Deletes the content of that location; a ring store itself deletes nothing. */
  remove(): Promise<void>;
}

/**
 * The configuration of `sealring`: the options that the servers pass to `createKmsCodec`. It is the default export of
 * `sealring.config.js`, `.mjs`, `.ts` or `.mts`.
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
  /** Where `doctor` tests a complete compare-and-swap. Default: it only tests a write that must be rejected. */
  readonly probe?: SealringProbe;
  /** Where `proxy` stores redeemed tokens. Default: a token can be redeemed more than once until it expires. */
  readonly singleUse?: SingleUseStore;
}

/** A configuration that was loaded. */
export interface Settings {
  readonly config: SealringConfig;
  /** Its source, for messages: `sealring.config.mjs`, `the environment`. */
  readonly origin: string;
  /** Closes the ring store, the key wrappers, and everything else that the configuration uses. */
  close(): Promise<void>;
}

/** The options for core: all options except the options of commands. */
export function codecOptionsOf(config: SealringConfig): Omit<SealringConfig, 'probe' | 'singleUse'> {
  const { probe: _, singleUse: __, ...options } = config;
  return options;
}

/** The key wrappers, as a list. */
export function keyWrappersOf({ keyWrapper }: SealringConfig): readonly KeyWrapper[] {
  return Array.isArray(keyWrapper) ? keyWrapper : [keyWrapper as KeyWrapper];
}

/** The name of the ring, with the default of core. */
export function ringNameOf({ ringName }: Pick<SealringConfig, 'ringName'>): string {
  return ringName ?? 'default';
}

/** The time by the clock of a configuration, in milliseconds since the epoch. */
export function nowOf({ clock }: Pick<SealringConfig, 'clock'>): number {
  return clock?.wallMs() ?? Date.now();
}

/** Closes the stores and the key wrappers, even if closing one of them fails. */
export async function closeConfig(config: Partial<SealringConfig>): Promise<void> {
  const wrappers = Array.isArray(config.keyWrapper) ? config.keyWrapper : [config.keyWrapper];
  const open = [config.ring, config.probe?.ring, config.singleUse, ...wrappers] as readonly (
    | { close?(): Promise<void> }
    | undefined
  )[];
  await Promise.allSettled(open.map(async (one) => one?.close?.()));
}
