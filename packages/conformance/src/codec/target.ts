import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, aWholeNumber, checkArgument } from '../options.ts';

/** A codec and its close function. */
export interface CodecInstance {
  /** The codec under test. */
  readonly codec: RequestStateCodec;
  /** Closes the instance. Called once for every instance, even if its requirement failed. */
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
  /** Creates a codec with keys A. */
  create(): Promise<CodecInstance> | CodecInstance;
  /** Creates another instance with the same keys, which represents another process of the fleet. */
  createPeer(): Promise<CodecInstance> | CodecInstance;
  /** Creates a codec with other keys, which represents another service. */
  createStranger(): Promise<CodecInstance> | CodecInstance;
  /** Creates a codec after a rotation: it seals with keys B and still unseals tokens sealed with keys A. */
  createRotated?(): Promise<CodecInstance> | CodecInstance;
  /** Capabilities that the codec claims. Requirements that need other capabilities do not apply. */
  readonly supports?: CodecSupport;
  /** The name of the error with which `unseal` refuses a token. Default `InvalidRequestState`. */
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
  // Only a target that runs a program has this member. The code that created the target calls it.
  close: v.optional(aFunction),
});

/** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
export function checkCodecTarget(owner: string, target: unknown): asserts target is CodecTarget {
  checkArgument(owner, TARGET, target);
}
