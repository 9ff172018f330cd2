import { describe, expect, test } from 'vitest';
import { type KeyName, mayMean, parseKeyName } from '../src/key-name.ts';

const UUID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const MRK = 'mrk-1234abcd12ab34cd56ef1234567890ab';
const arn = (id: string, region = 'eu-west-1', account = '111122223333', partition = 'aws'): string =>
  `arn:${partition}:kms:${region}:${account}:key/${id}`;

function named(text: string): KeyName {
  const name = parseKeyName(text);
  if (name === undefined) throw new Error(`not a key name: ${text}`);
  return name;
}

describe('names of KMS keys', () => {
  test.each([
    [arn(UUID), 'key-arn'],
    [arn(MRK, 'us-gov-west-1', '111122223333', 'aws-us-gov'), 'key-arn'],
    [UUID, 'key-id'],
    [MRK, 'key-id'],
    ['arn:aws-cn:kms:cn-north-1:111122223333:alias/sealring/a_b-1', 'alias-arn'],
    ['alias/sealring', 'alias-name'],
  ])('%s is a %s', (text, form) => {
    expect(parseKeyName(text)?.form).toBe(form);
  });

  test.each([
    '',
    'sealring',
    'alias/',
    'alias/with space',
    UUID.toUpperCase(),
    `${UUID}\n`,
    ` ${UUID}`,
    'mrk-short',
    `key/${UUID}`,
    arn('alias/x'),
    arn(UUID, ''),
    arn(UUID, 'eu-west-1', '1111'),
    arn(UUID).replace(':kms:', ':s3:'),
    `${arn(UUID)}/x`,
    `x${arn(UUID)}`,
  ])('%j is rejected', (text) => {
    expect(parseKeyName(text)).toBeUndefined();
  });

  test('a key ARN matches only that key in that region, account and partition', () => {
    const own = named(arn(UUID));
    expect(mayMean(own, arn(UUID), false)).toBe(true);
    expect(mayMean(own, arn(UUID), true)).toBe(true);
    for (const other of [
      arn(UUID, 'eu-west-2'),
      arn(UUID, 'eu-west-1', '999922223333'),
      arn(UUID, 'eu-west-1', '111122223333', 'aws-cn'),
      arn(UUID.replace('1', '2')),
      UUID,
      'alias/x',
    ]) {
      expect(mayMean(own, other, true)).toBe(false);
    }
  });

  test('a bare key id matches the key with exactly that id', () => {
    expect(mayMean(named(UUID), arn(UUID, 'us-east-1', '999922223333'), false)).toBe(true);
    expect(mayMean(named(UUID), arn(UUID.replace('1', '2')), true)).toBe(false);
  });

  test('an alias name matches any key, and an alias ARN matches any key of its region and account', () => {
    expect(mayMean(named('alias/x'), arn(UUID), false)).toBe(true);
    expect(mayMean(named('alias/x'), 'alias/x', false)).toBe(false);
    const alias = named('arn:aws:kms:eu-west-1:111122223333:alias/x');
    expect(mayMean(alias, arn(UUID), false)).toBe(true);
    expect(mayMean(alias, arn(UUID, 'eu-west-2'), false)).toBe(false);
    expect(mayMean(alias, arn(UUID, 'eu-west-1', '999922223333'), false)).toBe(false);
  });

  test('only a multi-Region key matches in other regions, only on request, and only in its account and partition', () => {
    const own = named(arn(MRK));
    expect(mayMean(own, arn(MRK, 'us-east-1'), true)).toBe(true);
    expect(mayMean(own, arn(MRK, 'us-east-1'), false)).toBe(false);
    expect(mayMean(own, arn(MRK, 'us-east-1', '999922223333'), true)).toBe(false);
    expect(mayMean(own, arn(MRK, 'eu-west-1', '111122223333', 'aws-cn'), true)).toBe(false);
    expect(mayMean(named(arn(UUID)), arn(UUID, 'us-east-1'), true)).toBe(false);
  });
});
