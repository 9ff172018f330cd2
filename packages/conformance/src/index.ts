export { CODEC_REQUIREMENTS } from './codec/requirements.ts';
export { describeCodec, runCodecConformance } from './codec/suite.ts';
export type { CodecInstance, CodecSupport, CodecTarget } from './codec/target.ts';
export type { TestRunner } from './describe.ts';
export type { ConformanceOptions } from './options.ts';
export type { ConformanceReport, ConformanceResult, SuiteName } from './report.ts';
export type { Requirement } from './requirement.ts';
