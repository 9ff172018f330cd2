import { describe } from 'vitest';
// @boundaries-ignore what the tests of all packages share is no package
import { liveLaws } from '../../../test/support/live-laws.ts';
import { gcpKmsKeyWrapper } from '../src/index.ts';

const variables = { own: 'SEALRING_LIVE_GCP_KEY_NAME', other: 'SEALRING_LIVE_GCP_OTHER_KEY_NAME' };

describe('live: Google Cloud KMS itself, with Application Default Credentials', () => {
  liveLaws(variables, (keyName) => gcpKmsKeyWrapper({ keyName }));
});
