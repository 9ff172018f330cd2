import type { KeyWrapper, RingStore } from '@sealring/core';
import { rejectedOptionIn } from '../foreign-error.ts';
import { UsageError } from '../usage-error.ts';
import { KMS_VARIABLES, keyWrappersIn } from './environment-kms.ts';
import { STORE_VARIABLE, storeIn } from './environment-store.ts';
import { closeConfig, type SealringConfig, type Settings } from './settings.ts';
import { type Environment, optional, required } from './variables.ts';

/** Whether the environment names a ring store or a KMS key. */
export function isInEnvironment(environment: Environment): boolean {
  return [STORE_VARIABLE, ...Object.values(KMS_VARIABLES)].some((name) => optional(environment, name) !== undefined);
}

/**
 * Creates a ring store and key wrappers from the `SEALRING_*` variables. The output `environment` of the Terraform
 * modules contains the variables for the clouds.
 *
 * @throws {UsageError} that names the variable. @throws {ConfigFailure} if the KMS fails meanwhile.
 */
export async function loadEnvironment(environment: Environment): Promise<Settings> {
  const made: { keyWrapper: readonly KeyWrapper[]; ring?: RingStore } = { keyWrapper: [] };
  try {
    made.keyWrapper = await keyWrappersIn(environment);
    if (made.keyWrapper.length === 0) {
      throw new UsageError(`no KMS key is named: set one of ${Object.values(KMS_VARIABLES).join(', ')}`);
    }
    made.ring = await storeIn(environment);
    const config: SealringConfig = {
      ring: made.ring,
      keyWrapper: made.keyWrapper,
      ringName: required(environment, 'SEALRING_RING_NAME'),
    };
    return { config, origin: 'the environment', close: () => closeConfig(config) };
  } catch (error) {
    await closeConfig(made);
    // The adapter's error names the option and its value. The option comes from a variable, so that variable is wrong.
    const rejection = rejectedOptionIn(error);
    throw rejection === undefined ? error : new UsageError(`the SEALRING_* variables: ${rejection}`);
  }
}
