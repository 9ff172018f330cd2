import { option } from '@sealring/core/adapter';
import { MAX_TOKEN_LENGTH } from '@sealring/core/format-secrets';

const DEFAULT_MAX_TOKEN_LENGTH = 65_536;

/** Reads the option `maxTokenLength`. @throws {TypeError | RangeError} */
export function readMaxTokenLength(owner: string, value: unknown = DEFAULT_MAX_TOKEN_LENGTH): number {
  return option.integerWithin(owner, 'maxTokenLength', value, 256, MAX_TOKEN_LENGTH);
}
