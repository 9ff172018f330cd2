import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, aWholeNumber, checkArgument } from '../options.ts';

/** A codec, and what ends it. */
export interface CodecInstance {
  /** What is tried. */
  readonly codec: RequestStateCodec;
  /** Called once for every instance, also when its requirement failed. */
  close?(): Promise<void> | void;
}

/** What a codec claims, where codecs may differ. */
export interface CodecSupport {
  /** Whether tokens hide their payload. Default true: claimed unless denied. */
  readonly confidentiality?: boolean;
  /** The longest payload it takes; a longer one must be refused by `seal`, not cut. Default: no limit below 64 KiB. */
  readonly maxPayloadBytes?: number;
  /** Whether another process of the same fleet unseals its tokens. Default true. */
  readonly crossInstance?: boolean;
}

/** The codec under test, and the company it keeps. Every call makes a fresh instance. */
export interface CodecTarget {
  /** For the report. */
  readonly name: string;
  /** A codec with keys A. */
  create(): Promise<CodecInstance> | CodecInstance;
  /** Another process of the fleet: another instance with the same keys. */
  createPeer(): Promise<CodecInstance> | CodecInstance;
  /** Another service: other keys. */
  createStranger(): Promise<CodecInstance> | CodecInstance;
  /** The fleet after a rotation: seals with B and still unseals A. */
  createRotated?(): Promise<CodecInstance> | CodecInstance;
  /** What the codec claims; requirements beyond it do not apply. */
  readonly supports?: CodecSupport;
  /** The name of the error that refuses a token. Default `InvalidRequestState`. */
  readonly refusal?: string;
}

/** The longest payload of the suite, bytes. */
export const LONGEST_PAYLOAD: number = 64 * 1024;

/** What `supports` may hold. */
export const CODEC_SUPPORT: v.GenericSchema = anObject({
  confidentiality: v.optional(aFlag),
  maxPayloadBytes: v.optional(aWholeNumber(1, Number.MAX_SAFE_INTEGER)),
  crossInstance: v.optional(aFlag),
});

const TARGET = anObject({
  name: aText,
  create: aFunction,
  createPeer: aFunction,
  createStranger: aFunction,
  createRotated: v.optional(aFunction),
  supports: v.optional(CODEC_SUPPORT),
  refusal: v.optional(aText),
  // Of a target that runs a program: who made it ends it.
  close: v.optional(aFunction),
});

/** @throws {TypeError | RangeError} naming what is wrong with the target. */
export function checkCodecTarget(owner: string, target: unknown): asserts target is CodecTarget {
  checkArgument(owner, TARGET, target);
}
