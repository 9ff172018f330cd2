import { expect, test } from 'vitest';
import { awsErrorFacts, awsErrorRows } from '../../src/adapter/aws-errors.ts';

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

test('the codes, the status and the request id of an error are read, and no message', () => {
  const error = { name: 'A', code: 'B', message: 'C', $metadata: { httpStatusCode: 400, requestId: 'D' } };
  expect(awsErrorFacts(error)).toEqual({ codes: ['A', 'B'], status: 400, requestId: 'D', isClockError: false });
  expect(awsErrorFacts(undefined)).toMatchObject({ codes: [undefined, undefined], isClockError: false });
});

test.each([
  ['Signature expired: 20261121T030000Z is now earlier than 20261121T030500Z', {}, true],
  ['Signature not yet current: 20261121T031500Z is still later than 20261121T030500Z', {}, true],
  ['The request signature we calculated does not match the signature you provided.', {}, false],
  ['x Signature expired: 20261121T030000Z', {}, false],
  ['Signature expiredX', {}, false],
  [7, {}, false],
  ['', { clockSkewCorrected: true }, true],
  ['', { clockSkewCorrected: 'true' }, false],
])('a refused signature with the message %j and the metadata %j is due to the clock: %s', (message, $metadata, is) => {
  for (const name of ['name', 'code']) {
    const error = { [name]: 'InvalidSignatureException', message, $metadata };
    expect(awsErrorFacts(error)).toMatchObject({ isClockError: is });
  }
});

// With a clock that differs by four minutes or more, the SDK sets the mark on every error.
test.each(['DisabledException', 'AccessDeniedException', 'UnrecognizedClientException', undefined])(
  'an error %s is not about the clock, even if the SDK marks it',
  (name) => {
    const error = { name, message: 'Signature expired: x', $metadata: { clockSkewCorrected: true } };
    expect(awsErrorFacts(error).isClockError).toBe(false);
  },
);
