import { expect, test } from 'vitest';
import { awsErrorRows } from '../../src/adapter/aws-errors.ts';

test('every error name that AWS services share maps to the row for its meaning', () => {
  const rows = awsErrorRows({
    denied: 'denied',
    credentials: 'credentials',
    expired: 'expired',
    clock: 'clock',
    request: 'request',
    throttled: 'throttled',
    busy: 'busy',
  });
  expect(rows).toMatchObject({
    AccessDeniedException: 'denied',
    UnrecognizedClientException: 'credentials',
    InvalidSignatureException: 'credentials',
    ExpiredTokenException: 'expired',
    CredentialsProviderError: 'expired',
    RequestTimeTooSkewed: 'clock',
    ValidationException: 'request',
    ThrottlingException: 'throttled',
    LimitExceededException: 'throttled',
    InternalFailure: 'busy',
    ServiceUnavailable: 'busy',
  });
  expect(Object.keys(rows)).toHaveLength(33);
});
