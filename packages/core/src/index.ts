export { type CanonicalJsonOptions, canonicalJson } from './canonical-json.ts';
export type { Clock, RandomSource } from './clock.ts';
export { type InvalidReason, InvalidRequestState, type RequestStateCodec } from './codec.ts';
export { CodecClosedError, SealUnavailableError, type SealUnavailableReason } from './errors.ts';
export {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  type WrapOptions,
  type WrappedKey,
} from './key-wrapper.ts';
export {
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
  type StoredRing,
} from './ring/store.ts';
