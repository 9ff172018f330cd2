import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { kmsFailuresOf } from '../foreign-error.ts';
import type { CurrentVersion } from './check-versions.ts';
import { error, type Finding, ok } from './finding.ts';
import { kmsFinding, SIGNATURE_REMEDY } from './kms-findings.ts';

/** Lengths of a data key, without and with the context hash that core appends for a KMS without encryption context. */
const DATA_KEY_BYTES = 32;
const BOUND_BYTES = 64;

/** The result of a round trip, and the KMS key version that wrapped the data key, if the key wrapper names it. */
export interface CheckedKms {
  readonly finding: Finding;
  readonly current?: CurrentVersion;
}

/**
 * Creates a data key as a member does, wraps it, and unwraps it again. The first key wrapper of a ring generates the
 * data key in the KMS if it can; the others wrap an existing data key.
 */
export async function checkKms(
  wrapper: KeyWrapper,
  isFirst: boolean,
  options: Required<Pick<WrapOptions, 'context' | 'onServiceDate' | 'signal'>>,
): Promise<CheckedKms> {
  try {
    return await roundTrip(wrapper, isFirst, options);
  } catch (thrown) {
    const [failure] = kmsFailuresOf(thrown);
    if (failure !== undefined) return { finding: kmsFinding(failure, wrapper.keyId) };
    return {
      finding: error(
        'kms-error',
        `${wrapper.provider} threw ${thrown instanceof Error ? thrown.name : typeof thrown} instead of KeyWrapperError`,
        'Correct the key wrapper, and test it with sealring-conformance key-wrapper.',
      ),
    };
  }
}

async function roundTrip(
  wrapper: KeyWrapper,
  isFirst: boolean,
  options: Required<Pick<WrapOptions, 'context' | 'onServiceDate' | 'signal'>>,
): Promise<CheckedKms> {
  const { provider, keyId, supports } = wrapper;
  const { dataKey, wrapped } = await make(wrapper, isFirst, options);
  try {
    if (!supports.authenticated && wrapper.sign !== undefined) {
      const entry = randomBytes(DATA_KEY_BYTES);
      const signature = await wrapper.sign(entry, { signal: options.signal });
      if (wrapper.verify?.(entry, signature) !== true) {
        return {
          finding: error(
            'kms-signature',
            `${provider} signs with a key whose public key is not pinned`,
            SIGNATURE_REMEDY,
          ),
        };
      }
    }
    const back = await wrapper.unwrap(wrapped, options);
    const isSame = back.length === dataKey.length && timingSafeEqual(back, dataKey);
    back.fill(0);
    if (!isSame) {
      return {
        finding: error(
          'kms-wrong-bytes',
          `${provider} wrapped a data key, but unwrapped it to different bytes (key ${keyId})`,
          'Do not use this key wrapper. Test it with sealring-conformance key-wrapper.',
        ),
      };
    }
  } finally {
    dataKey.fill(0);
  }
  return {
    finding: ok('kms', `${provider} wraps and unwraps a data key (key ${keyId})`),
    ...(supports.keyVersions === true && { current: { wrapper, keyId: wrapped.keyId } }),
  };
}

async function make(
  wrapper: KeyWrapper,
  isFirst: boolean,
  options: WrapOptions,
): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }> {
  if (isFirst && wrapper.generate !== undefined && wrapper.supports.context) return wrapper.generate(options);
  const dataKey = randomBytes(wrapper.supports.context ? DATA_KEY_BYTES : BOUND_BYTES);
  return { dataKey, wrapped: await wrapper.wrap(dataKey, options) };
}
