import { describe } from 'vitest';
// @boundaries-ignore what the tests of all packages share is no package
import { liveLaws } from '../../../test/support/live-laws.ts';
import { awsKmsKeyWrapper } from '../src/index.ts';

const variables = { own: 'SEALRING_LIVE_AWS_KEY_ID', other: 'SEALRING_LIVE_AWS_OTHER_KEY_ID' };

describe('live: AWS KMS itself, with the AWS default chain', () => {
  liveLaws(variables, (keyId) => awsKmsKeyWrapper({ keyId }));
});
