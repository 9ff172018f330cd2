import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, aWholeNumber, checkArgument } from '../options.ts';

/** A codec and its close function. */
export interface CodecInstance {
  /** The codec under test. */
  readonly codec: RequestStateCodec;
  /** Called once for every instance, even if its requirement failed. */
  close?(): Promise<void> | void;
}

/** Optional capabilities of a codec. */
export interface CodecSupport {
  /** Whether tokens hide their payload. Default true. */
  readonly confidentiality?: boolean;
  /** The longest payload in bytes; `seal` must refuse a longer one. Default: no limit below 64 KiB. */
  readonly maxPayloadBytes?: number;
  /** Whether other processes of the fleet unseal the codec's tokens. Default true. */
  readonly crossInstance?: boolean;
}

/** The codec under test, in several variants. Every call creates a new instance. */
export interface CodecTarget {
  /** The name in the report. */
  readonly name: string;
  /** A codec with keys A. */
  create(): Promise<CodecInstance> | CodecInstance;
  /** Another process of the fleet: another instance with the same keys. */
  createPeer(): Promise<CodecInstance> | CodecInstance;
  /** Another service: other keys. */
  createStranger(): Promise<CodecInstance> | CodecInstance;
  /** The fleet after a rotation: seals with B and still unseals A. */
  createRotated?(): Promise<CodecInstance> | CodecInstance;
  /** Capabilities that the codec claims. Requirements that need other capabilities do not apply. */
  readonly supports?: CodecSupport;
  /** The name of the error that refuses a token. Default `InvalidRequestState`. */
  readonly refusal?: string;
}

/** The longest payload of the suite, in bytes. */
export const LONGEST_PAYLOAD: number = 64 * 1024;

/** The members of `supports`. */
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
  // A target that runs a program; its creator closes it.
  close: v.optional(aFunction),
});

/** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
export function checkCodecTarget(owner: string, target: unknown): asserts target is CodecTarget {
  checkArgument(owner, TARGET, target);
}
