import type { RequestStateCodec } from '@sealring/core';
import { flag, integerWithin, refuseUnknownOptions, text, wrongType } from '@sealring/core/adapter';

/** A codec, and what ends it. */
export interface CodecInstance {
  readonly codec: RequestStateCodec;
  close?(): Promise<void> | void;
}

/** What a codec claims, where codecs may differ. */
export interface CodecSupport {
  /** Whether tokens hide their payload. Default true: claimed unless denied. */
  readonly confidentiality?: boolean;
  /** The longest payload it takes; a longer one must be refused by `seal`, not cut. Default: no limit below 64 KiB. */
  readonly maxPayloadBytes?: number;
  /** Whether another process of the same fleet opens its tokens. Default true. */
  readonly crossInstance?: boolean;
}

/** The codec under test, and the company it keeps. Every call makes a fresh instance. */
export interface CodecTarget {
  readonly name: string;
  /** A codec with keys A. */
  create(): Promise<CodecInstance> | CodecInstance;
  /** Another process of the fleet: another instance with the same keys. */
  createPeer(): Promise<CodecInstance> | CodecInstance;
  /** Another service: other keys. */
  createStranger(): Promise<CodecInstance> | CodecInstance;
  /** The fleet after a rotation: seals with B and still opens A. */
  createRotated?(): Promise<CodecInstance> | CodecInstance;
  readonly supports?: CodecSupport;
  /** The name of the error that refuses a token. Default `InvalidRequestState`. */
  readonly refusal?: string;
}

/** A checked target, with every default filled in. */
export interface CodecSubject extends Omit<CodecTarget, 'supports' | 'refusal'> {
  readonly supports: Required<CodecSupport>;
  readonly refusal: string;
}

const KNOWN = ['name', 'create', 'createPeer', 'createStranger', 'createRotated', 'supports', 'refusal'];
/** The longest payload of the suite, bytes. */
export const LONGEST_PAYLOAD: number = 64 * 1024;

/** @throws {TypeError | RangeError} naming what is wrong with the target. */
export function readCodecTarget(owner: string, target: CodecTarget): CodecSubject {
  refuseUnknownOptions(owner, target, KNOWN);
  const { name, supports = {}, refusal = 'InvalidRequestState' } = target;
  const rotates = 'createRotated' in target && target.createRotated !== undefined;
  for (const factory of ['create', 'createPeer', 'createStranger'] as const) {
    if (typeof target[factory] !== 'function') throw wrongType(owner, factory, 'a function', target[factory]);
  }
  if (rotates && typeof target.createRotated !== 'function') {
    throw new TypeError(`${owner}: createRotated must be a function`);
  }
  refuseUnknownOptions(`${owner}: supports`, supports, ['confidentiality', 'maxPayloadBytes', 'crossInstance']);
  const { confidentiality = true, maxPayloadBytes = Number.MAX_SAFE_INTEGER, crossInstance = true } = supports;
  return {
    name: text(owner, 'name', name),
    create: () => target.create(),
    createPeer: () => target.createPeer(),
    createStranger: () => target.createStranger(),
    ...(rotates && { createRotated: async () => target.createRotated?.() as CodecInstance | Promise<CodecInstance> }),
    supports: {
      confidentiality: flag(owner, 'supports.confidentiality', confidentiality),
      maxPayloadBytes: integerWithin(owner, 'supports.maxPayloadBytes', maxPayloadBytes, 1, Number.MAX_SAFE_INTEGER),
      crossInstance: flag(owner, 'supports.crossInstance', crossInstance),
    },
    refusal: text(owner, 'refusal', refusal),
  };
}
