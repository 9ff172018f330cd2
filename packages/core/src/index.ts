/**
 * Protects MCP `requestState` with keys that a KMS guards. {@link createKmsCodec} creates the codec, whose `seal` and
 * `unseal` are synchronous. Its data keys form a ring, which is kept in a ring store and rotates automatically.
 *
 * @packageDocumentation
 */

export { type CanonicalJsonOptions, canonicalJson } from './base/canonical-json.ts';
export type { Clock, RandomSource } from './base/clock.ts';
export { AesGcmRequestStateCodec } from './codec/aes-gcm-codec.ts';
export type { CodecHealth, KeyHealth } from './codec/codec-health.ts';
export { createKmsCodec, type KmsCodec, type RingTokenCodec, type TokenFacts } from './codec/kms-codec.ts';
export type { KmsCodecOptions } from './codec/kms-codec-options.ts';
export { INVALID_REASONS, type InvalidReason, InvalidRequestState, type RequestStateCodec } from './contracts/codec.ts';
export {
  CORE_ERROR_CODES,
  CodecClosedError,
  type CoreErrorCode,
  SEAL_UNAVAILABLE_REASONS,
  SealUnavailableError,
  type SealUnavailableReason,
} from './contracts/errors.ts';
export {
  type CallOutcome,
  CODEC_STATUSES,
  type CodecEvents,
  type CodecFailure,
  type CodecStatus,
  hashedKeyId,
  ROTATION_REASONS,
  type RotationReason,
} from './contracts/events.ts';
export {
  KEY_WRAPPER_ERROR_KINDS,
  KEY_WRAPPER_OPERATIONS,
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  type KeyWrapperOperation,
  type WrapOptions,
  type WrappedKey,
} from './contracts/key-wrapper.ts';
export {
  RING_STORE_ERROR_KINDS,
  RING_STORE_OPERATIONS,
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type RingStoreErrorKind,
  type RingStoreOperation,
  type StoredRing,
} from './contracts/ring-store.ts';
export { type SingleUseStore, SingleUseStoreError, type SingleUseStoreErrorKind } from './contracts/single-use.ts';
export { type LocalKeyWrapperOptions, localKeyWrapper } from './kms/local-key-wrapper.ts';
export { RING_PROBLEM_KINDS, type RingProblem, type RingProblemKind } from './member/problems.ts';
export type { RingPolicy } from './ring/policy.ts';
export { KEY_STATES, type KeyState } from './ring/schedule.ts';
export { fileRing } from './stores/file-ring.ts';
export { memoryRing } from './stores/memory-ring.ts';
export { staticRing } from './stores/static-ring.ts';
