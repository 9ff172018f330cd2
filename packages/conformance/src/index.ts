/**
 * Checks a codec, a key wrapper, a ring store or a single-use store against its contract. To define tests in a
 * test runner, use {@link describeCodec}, {@link describeKeyWrapper}, {@link describeRingStore} or
 * {@link describeSingleUse}.
 *
 * @packageDocumentation
 */

export { CODEC_REQUIREMENTS, type CodecConformanceOptions, describeCodec, runCodecConformance } from './codec/suite.ts';
export type { CodecInstance, CodecSupport, CodecTarget } from './codec/target.ts';
export { type ExecCodecOptions, type ExecCodecTarget, execCodecTarget } from './exec/codec-target.ts';
export type { ExecOptions } from './exec/fleet.ts';
export { type ExecKeyWrapperTarget, execKeyWrapperTarget } from './exec/key-wrapper-target.ts';
export { type ExecRingStoreTarget, execRingStoreTarget } from './exec/ring-store-target.ts';
export { describeKeyWrapper, KEY_WRAPPER_REQUIREMENTS, runKeyWrapperConformance } from './key-wrapper/suite.ts';
export type {
  KeyWrapperControl,
  KeyWrapperInstance,
  KeyWrapperSupport,
  KeyWrapperTarget,
} from './key-wrapper/target.ts';
export type { ConformanceOptions } from './options.ts';
export type { ConformanceReport, ConformanceResult, Requirement, SuiteName } from './requirement.ts';
export { describeRingStore, RING_STORE_REQUIREMENTS, runRingStoreConformance } from './ring-store/suite.ts';
export type { RingStoreInstance, RingStoreOptions, RingStoreSupport, RingStoreTarget } from './ring-store/target.ts';
export type { TestRunner } from './runner.ts';
export { describeSingleUse, runSingleUseConformance, SINGLE_USE_REQUIREMENTS } from './single-use/suite.ts';
export type { SingleUseInstance, SingleUseStoreLike, SingleUseTarget } from './single-use/target.ts';
