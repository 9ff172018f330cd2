/**
 * Protects MCP `requestState` with keys that a KMS guards: {@link createKmsCodec} makes the codec, whose `seal` and
 * `unseal` are synchronous; a ring of data keys lives in a ring store and rotates by itself.
 *
 * @packageDocumentation
 */

export { AesGcmRequestStateCodec } from './aes-gcm-codec.ts';
export { type CanonicalJsonOptions, canonicalJson } from './canonical-json.ts';
export type { Clock, RandomSource } from './clock.ts';
export { type InvalidReason, InvalidRequestState, type RequestStateCodec } from './codec.ts';
export type { CodecHealth, KeyHealth } from './codec-health.ts';
export { CodecClosedError, SealUnavailableError, type SealUnavailableReason } from './errors.ts';
export { type CodecEvents, hashedKeyId } from './events.ts';
export {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  type WrapOptions,
  type WrappedKey,
} from './key-wrapper.ts';
export { createKmsCodec, type KmsCodec, type RingTokenCodec, type TokenFacts } from './kms-codec.ts';
export type { KmsCodecOptions } from './kms-codec-options.ts';
export { type LocalKeyWrapperOptions, localKeyWrapper } from './local-key-wrapper.ts';
export type { RingProblem, RingProblemKind } from './member/problems.ts';
export type { RingPolicy } from './ring/policy.ts';
export type { KeyState } from './ring/schedule.ts';
export {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type RingStoreErrorKind,
  type StoredRing,
} from './ring-store.ts';
export { type SingleUseStore, SingleUseStoreError } from './single-use.ts';
export { fileRing } from './stores/file-ring.ts';
export { memoryRing } from './stores/memory-ring.ts';
export { staticRing } from './stores/static-ring.ts';
