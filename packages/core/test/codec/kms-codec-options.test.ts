import { describe, expect, test } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { checkOptions, type KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { type RingPolicy, resolvePolicy } from '../../src/ring/policy.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';

const MASTER = Buffer.alloc(32, 'correct horse battery staple ÿ');
const keyWrapper = localKeyWrapper({ masterKey: MASTER });
const remote = { storeKind: 's3', createNow: false };

/** A wrapper that cannot authenticate the origin: RSA wrapping with a public key. */
const unauthenticated: KeyWrapper = {
  provider: 'azure-key-vault',
  keyId: 'k',
  supports: { context: false, authenticated: false },
  wrap: (dataKey, options) => keyWrapper.wrap(dataKey, options),
  unwrap: (wrapped, options) => keyWrapper.unwrap(wrapped, options),
};

interface Refusal {
  readonly error: 'TypeError' | 'RangeError';
  /** Required parts of the message: the option, and the value unless it may be a secret. */
  readonly names: readonly string[];
}

async function refusalOf(options: unknown): Promise<Error> {
  // JavaScript callers can do this, although the types would reject these options.
  const given = options as KmsCodecOptions;
  let failure: unknown;
  try {
    const codec = await createKmsCodec(given);
    await codec.close();
  } catch (error) {
    failure = error;
  }
  if (!(failure instanceof Error)) throw new Error('these options were accepted');
  return failure;
}

/** How options are refused, and the expected words that the message lacks. */
async function refusedWith(options: unknown, { names }: Refusal): Promise<unknown> {
  const refusal = await refusalOf(options);
  const { name, message } = refusal;
  return { error: name, code: Reflect.get(refusal, 'code'), missing: names.filter((word) => !message.includes(word)) };
}

const as = ({ error }: Refusal) => ({ error, code: 'ERR_SEALRING_OPTION', missing: [] });

const typeError = (...names: string[]): Refusal => ({ error: 'TypeError', names });
const rangeError = (...names: string[]): Refusal => ({ error: 'RangeError', names });

describe('wrong options of createKmsCodec', () => {
  const wrong: readonly (readonly [string, Record<string, unknown>, Refusal])[] = [
    ['keyWrapper missing', { keyWrapper: undefined }, typeError('keyWrapper', 'undefined')],
    ['keyWrapper null', { keyWrapper: null }, typeError('keyWrapper', 'null')],
    ['keyWrapper a string', { keyWrapper: 'arn:aws:kms' }, typeError('keyWrapper', 'a string')],
    ['keyWrapper without unwrap', { keyWrapper: { ...keyWrapper, unwrap: undefined } }, typeError('keyWrapper')],
    ['keyWrapper without supports', { keyWrapper: { ...keyWrapper, supports: undefined } }, typeError('supports')],
    [
      'keyWrapper with half of supports',
      { keyWrapper: { ...keyWrapper, supports: { context: true } } },
      typeError('supports'),
    ],
    ['no key wrappers', { keyWrapper: [] }, rangeError('keyWrapper', '0')],
    ['nine key wrappers', { keyWrapper: Array.from({ length: 9 }, () => keyWrapper) }, rangeError('keyWrapper', '9')],
    ['a null among key wrappers', { keyWrapper: [keyWrapper, null] }, typeError('keyWrapper', 'null')],
    ['a provider in capitals', { keyWrapper: { ...keyWrapper, provider: 'AWS' } }, typeError('keyWrapper.provider')],
    [
      'a provider that is a number',
      { keyWrapper: { ...keyWrapper, provider: 1 } },
      typeError('keyWrapper.provider', '1'),
    ],
    [
      'F35 a wrapper that neither authenticates nor signs',
      { keyWrapper: unauthenticated },
      typeError('keyWrapper', 'azure-key-vault', 'dangerouslyTrustStore'),
    ],
    [
      'F35 a wrapper that verifies, given to a member, who must sign',
      { keyWrapper: { ...unauthenticated, verify: () => true } },
      typeError('azure-key-vault', 'sign'),
    ],
    [
      'F35 a wrapper that signs and does not verify',
      { keyWrapper: { ...unauthenticated, sign: async () => MASTER } },
      typeError('azure-key-vault', 'sign'),
    ],
    [
      'F35 a wrapper that neither authenticates nor verifies, given to a reader',
      { keyWrapper: unauthenticated, role: 'reader' },
      typeError('azure-key-vault', 'dangerouslyTrustStore'),
    ],
    ['a provider with a space', { keyWrapper: { ...keyWrapper, provider: ' kms' } }, typeError('keyWrapper.provider')],
    [
      'a provider with a newline',
      { keyWrapper: { ...keyWrapper, provider: 'kms\n' } },
      typeError('keyWrapper.provider'),
    ],
    ['ring missing', { ring: undefined }, typeError('ring', 'undefined')],
    ['ring a path', { ring: '/var/ring' }, typeError('ring', 'a string')],
    ['ring without write', { ring: { ...memoryRing(), write: undefined } }, typeError('ring', 'an object')],
    ['ring without kind', { ring: { ...memoryRing(), kind: undefined } }, typeError('ring', 'kind')],
    ['ringName empty', { ringName: '' }, rangeError('ringName', '""')],
    ['ringName of 65 characters', { ringName: 'x'.repeat(65) }, rangeError('ringName', 'xxx')],
    ['ringName with a slash', { ringName: 'a/b' }, rangeError('ringName', '"a/b"')],
    ['ringName with a newline at its end', { ringName: 'payments\n' }, rangeError('ringName', '"payments\\n"')],
    ['ringName with an umlaut', { ringName: 'zähler' }, rangeError('ringName', 'zähler')],
    ['ringName a number', { ringName: 7 }, typeError('ringName', '7')],
    ['ringName null', { ringName: null }, typeError('ringName', 'null')],
    ['role unknown', { role: 'writer' }, rangeError('role', '"writer"')],
    ['role a boolean', { role: true }, typeError('role', 'true')],
    ['role null', { role: null }, typeError('role', 'null')],
    ['create unknown', { create: 'always' }, rangeError('create must', '"always"')],
    ['create a boolean', { create: false }, typeError('create must', 'false')],
    ['acceptKeysCreatedAfter a string', { acceptKeysCreatedAfter: '2026-01-01' }, typeError('acceptKeysCreatedAfter')],
    ['acceptKeysCreatedAfter a number', { acceptKeysCreatedAfter: 5 }, typeError('acceptKeysCreatedAfter', '5')],
    [
      'acceptKeysCreatedAfter invalid',
      { acceptKeysCreatedAfter: new Date(Number.NaN) },
      rangeError('acceptKeysCreatedAfter', 'invalid'),
    ],
    ['format unknown', { format: 'jwt' }, rangeError('format', '"jwt"')],
    ['format null', { format: null }, typeError('format', 'null')],
    ['accept a string', { accept: 'sealring' }, typeError('accept', 'a string')],
    ['accept empty', { accept: [] }, rangeError('accept', 'empty')],
    ['accept unknown', { accept: ['sealring', 'jwt'] }, rangeError('accept', '"jwt"')],
    ['accept of a number', { accept: [1] }, typeError('accept', '1')],
    ['accept null', { accept: null }, typeError('accept', 'null')],
    ['policy a number', { policy: 5 }, typeError('policy', '5')],
    ['policy an array', { policy: [] }, typeError('policy', 'array')],
    ['policy null', { policy: null }, typeError('policy', 'null')],
    ['policy with an unknown option', { policy: { rotateEvery: 5 } }, typeError('policy', '"rotateEvery"')],
    ['policy with the derived grace', { policy: { graceSeconds: 5 } }, typeError('policy', '"graceSeconds"')],
    ['wrapQuorum 0', { wrapQuorum: 0 }, rangeError('wrapQuorum', '0')],
    ['wrapQuorum above the key wrappers', { wrapQuorum: 2 }, rangeError('wrapQuorum', '2')],
    ['wrapQuorum NaN', { wrapQuorum: Number.NaN }, rangeError('wrapQuorum', 'NaN')],
    [
      'wrapQuorum in halves',
      { keyWrapper: [keyWrapper, keyWrapper], wrapQuorum: 1.5 },
      rangeError('wrapQuorum', '1.5'),
    ],
    ['wrapQuorum a string', { wrapQuorum: '1' }, typeError('wrapQuorum', 'a string')],
    ['wrapQuorum null', { wrapQuorum: null }, typeError('wrapQuorum', 'null')],
    [
      'dangerouslyTrustStore a string',
      { dangerouslyTrustStore: 'false' },
      typeError('dangerouslyTrustStore', 'a string'),
    ],
    ['closeKeyWrappers a string', { closeKeyWrappers: 'no' }, typeError('closeKeyWrappers', 'a string')],
    ['hedge a number', { hedge: 1 }, typeError('hedge', '1')],
    ['maxTokenLength 101', { maxTokenLength: 101 }, rangeError('maxTokenLength', '101')],
    ['maxTokenLength unlimited', { maxTokenLength: Infinity }, rangeError('maxTokenLength', 'Infinity')],
    ['maxTokenLength NaN', { maxTokenLength: Number.NaN }, rangeError('maxTokenLength', 'NaN')],
    ['maxTokenLength negative', { maxTokenLength: -1 }, rangeError('maxTokenLength', '-1')],
    ['maxTokenLength above 16 MiB', { maxTokenLength: 2 ** 24 + 1 }, rangeError('maxTokenLength', '16777217')],
    ['maxTokenLength a bigint', { maxTokenLength: 500n }, typeError('maxTokenLength', 'a bigint')],
    ['maxTokenLength null', { maxTokenLength: null }, typeError('maxTokenLength', 'null')],
    ['clock a function', { clock: () => 0 }, typeError('clock', 'a function')],
    ['clock without monotonicNs', { clock: { wallMs: () => 0 } }, typeError('clock', 'monotonicNs')],
    ['clock without wallMs', { clock: { monotonicNs: () => 0n } }, typeError('clock', 'wallMs')],
    ['clock null', { clock: null }, typeError('clock', 'null')],
    ['random an object', { random: {} }, typeError('random', 'an object')],
    ['random null', { random: null }, typeError('random', 'null')],
    ['signal an object', { signal: {} }, typeError('signal', 'an object')],
    ['an unknown option', { ringname: 'payments' }, typeError('"ringname"')],
    ['an option that every object inherits', { toString: 1 }, typeError('"toString"')],
    ['an option called __proto__', JSON.parse('{"__proto__":{"role":"reader"}}'), typeError('"__proto__"')],
  ];

  test.each(wrong)('createKmsCodec rejects an option, and names it and its value: %s', async (_, options, refusal) => {
    const given = { keyWrapper, ring: memoryRing() };
    for (const [name, value] of Object.entries(options)) {
      Object.defineProperty(given, name, { value, enumerable: true, configurable: true, writable: true });
    }
    expect(await refusedWith(given, refusal)).toEqual(as(refusal));
  });

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'payments'],
    ['an array', []],
  ])('%s is not an options object', async (_, options) => {
    const refusal = typeError('options');
    expect(await refusedWith(options, refusal)).toEqual(as(refusal));
  });

  test.each<readonly [string, Partial<KmsCodecOptions>]>([
    ['eight key wrappers', { keyWrapper: Array.from({ length: 8 }, () => keyWrapper) }],
    [
      'F35 a wrapper that signs and verifies',
      { keyWrapper: { ...unauthenticated, verify: () => true, sign: async () => MASTER } },
    ],
    [
      'F35 a wrapper that verifies, given to a reader',
      { keyWrapper: { ...unauthenticated, verify: () => true }, role: 'reader' },
    ],
    ['F35 any wrapper if the store is trusted', { keyWrapper: unauthenticated, dangerouslyTrustStore: true }],
    ['tokens of 16 MiB', { maxTokenLength: 2 ** 24 }],
    ['key wrappers that are closed with the codec', { closeKeyWrappers: true }],
  ])('createKmsCodec accepts these options: %s', (_, options) => {
    const { keyWrapper: wrappers, ...rest } = options;
    const checked = checkOptions({ keyWrapper, ring: memoryRing(), ...options });
    expect(checked).toMatchObject({ ...rest, keyWrappers: [wrappers ?? keyWrapper].flat() });
  });

  test('a policy option outside the policy is refused with an error that names its place', () => {
    expect(() => checkOptions({ keyWrapper, ring: memoryRing(), rotateEverySeconds: 86_400 })).toThrow(
      'createKmsCodec: "rotateEverySeconds" belongs in policy: { rotateEverySeconds }',
    );
  });

  test('nothing is read or written if an option is wrong', async () => {
    let calls = 0;
    const ring = {
      kind: 'memory',
      read: async () => {
        calls += 1;
        return undefined;
      },
      write: async () => {
        calls += 1;
        return { revision: '1' };
      },
    };
    await refusalOf({ keyWrapper, ring, policy: { propagationSeconds: 1 } });
    await refusalOf({ keyWrapper, ring, hedge: 'yes' });
    expect(calls).toBe(0);
  });
});

describe('every time of the policy', () => {
  const names: readonly (keyof RingPolicy)[] = [
    'clockSkewSeconds',
    'refreshEverySeconds',
    'backoffCapSeconds',
    'tokenLifetimeSeconds',
    'kmsCheckEverySeconds',
    'sealOutageSeconds',
    'storeOutageSeconds',
    'propagationSeconds',
    'rotateEverySeconds',
    'createAfterSeconds',
    'keyVersionEverySeconds',
    'kmsTimeoutSeconds',
    'startTimeoutSeconds',
    'missRefreshSeconds',
  ];

  test.each(names)(
    '%s refuses NaN, infinities, negative and enormous numbers, and values that are not numbers',
    async (name) => {
      const wrong: readonly (readonly [unknown, Refusal])[] = [
        ...[Number.NaN, Infinity, -Infinity, -1, -0.001, 1e12].map(
          (value) => [value, rangeError(name, String(value))] as const,
        ),
        ['60', typeError(name, 'a string')],
        [null, typeError(name, 'null')],
        [60n, typeError(name, 'a bigint')],
        [true, typeError(name, 'true')],
        [{}, typeError(name, 'an object')],
        [[60], typeError(name, 'an array')],
      ];
      for (const [value, refusal] of wrong) {
        const options = { keyWrapper, ring: memoryRing(), policy: { [name]: value } };
        expect(await refusedWith(options, refusal)).toEqual(as(refusal));
      }
    },
  );

  test('the tested times are the whole policy, except for the derived grace period', () => {
    const resolved = Object.keys(resolvePolicy(undefined, remote)).toSorted();
    expect(resolved).toEqual([...names, 'graceSeconds'].toSorted());
  });

  test('undefined means the default', () => {
    for (const name of names) expect(resolvePolicy({ [name]: undefined }, remote)).toEqual(resolvePolicy({}, remote));
  });
});

describe('the rules between the times', () => {
  const laws: readonly (readonly [string, Partial<RingPolicy>, readonly string[]])[] = [
    [
      'sealOutage is at least 3 × kmsCheckEvery',
      { sealOutageSeconds: 2_699, kmsCheckEverySeconds: 900 },
      ['sealOutageSeconds', '2699', 'kmsCheckEverySeconds', '900'],
    ],
    [
      'backoffCap is at most sealOutage',
      { sealOutageSeconds: 30, kmsCheckEverySeconds: 10, propagationSeconds: 4_500 },
      ['backoffCapSeconds', '60', 'sealOutageSeconds', '30'],
    ],
    [
      'storeOutage is at least 4 × refreshEvery',
      { storeOutageSeconds: 1_199, refreshEverySeconds: 300 },
      ['storeOutageSeconds', '1199', 'refreshEverySeconds', '300'],
    ],
    [
      'storeOutage is at most rotateEvery',
      { storeOutageSeconds: 86_401 },
      ['storeOutageSeconds', '86401', 'rotateEverySeconds', '86400'],
    ],
    [
      'propagation is at least sealOutage + 2 × refreshEvery + clockSkew',
      { propagationSeconds: 4_499 },
      ['propagationSeconds', '4499', 'sealOutageSeconds', '3600', 'refreshEverySeconds', 'clockSkewSeconds', '4500'],
    ],
    [
      'rotateEvery is at least 4 × propagation',
      { propagationSeconds: 21_601 },
      ['rotateEverySeconds', '86400', 'propagationSeconds', '21601'],
    ],
    [
      'a day is not enough for the propagation that follows from a longer outage',
      { sealOutageSeconds: 21_000 },
      ['rotateEverySeconds', 'propagationSeconds', '21900'],
    ],
    [
      'the keys that are alive at once fit into a ring of 64',
      { tokenLifetimeSeconds: 56 * 86_400 },
      ['tokenLifetimeSeconds', '4838400', 'rotateEverySeconds', '64'],
    ],
  ];

  test.each(laws)('createKmsCodec rejects a policy that violates a rule: %s', async (_, policy, names) => {
    const refusal = rangeError(...names);
    expect(await refusedWith({ keyWrapper, ring: memoryRing(), policy }, refusal)).toEqual(as(refusal));
  });

  test('a policy at the bounds of the rules is accepted', () => {
    const bounds: readonly Partial<RingPolicy>[] = [
      { sealOutageSeconds: 2_700, kmsCheckEverySeconds: 900 },
      { sealOutageSeconds: 60, kmsCheckEverySeconds: 20, backoffCapSeconds: 60 },
      { storeOutageSeconds: 1_200, refreshEverySeconds: 300 },
      { storeOutageSeconds: 86_400 },
      { propagationSeconds: 4_500 },
      { propagationSeconds: 21_600 },
    ];
    for (const policy of bounds) expect(resolvePolicy(policy, remote)).toMatchObject(policy);
  });

  test('the rules limit the number of keys: they accept the longest token lifetime for which 64 keys suffice', () => {
    const keys = (tokenLifetimeSeconds: number) =>
      Math.ceil((4_500 + 86_400 + 23_400 + tokenLifetimeSeconds + 3 * 300) / 86_400) + 9;
    const longest = 55 * 86_400 - 4_500 - 86_400 - 23_400 - 900;
    expect([keys(longest), keys(longest + 1)]).toEqual([64, 65]);
    expect(() => resolvePolicy({ tokenLifetimeSeconds: longest }, remote)).not.toThrow();
    expect(() => resolvePolicy({ tokenLifetimeSeconds: longest + 1 }, remote)).toThrow(RangeError);
  });
});

describe('the defaults', () => {
  test('the default policy has the documented values, including the derived times', () => {
    expect(resolvePolicy(undefined, remote)).toEqual({
      clockSkewSeconds: 300,
      refreshEverySeconds: 300,
      backoffCapSeconds: 60,
      tokenLifetimeSeconds: 3_600,
      kmsCheckEverySeconds: 900,
      sealOutageSeconds: 3_600,
      storeOutageSeconds: 21_600,
      propagationSeconds: 4_500,
      rotateEverySeconds: 86_400,
      graceSeconds: 23_400,
      createAfterSeconds: 360,
      keyVersionEverySeconds: 3_600,
      kmsTimeoutSeconds: 5,
      startTimeoutSeconds: 120,
      missRefreshSeconds: 10,
    });
  });

  test('a ring is created at once in memory and with create: now, and in any other store after R + backoffCap', () => {
    const after = (storeKind: string, createNow = false, refreshEverySeconds = 300) =>
      resolvePolicy({ refreshEverySeconds }, { storeKind, createNow }).createAfterSeconds;
    expect([after('memory'), after('file', true), after('s3', true)]).toEqual([0, 0, 0]);
    expect([after('s3'), after('file'), after('redis'), after('s3', false, 100)]).toEqual([360, 360, 360, 160]);
    expect(resolvePolicy({ createAfterSeconds: 7 }, { storeKind: 'memory', createNow: true }).createAfterSeconds).toBe(
      7,
    );
  });

  test('propagation and grace are derived from the times they depend on', () => {
    const policy = {
      sealOutageSeconds: 1_000,
      refreshEverySeconds: 50,
      clockSkewSeconds: 20,
      kmsCheckEverySeconds: 100,
    };
    expect(resolvePolicy({ ...policy, storeOutageSeconds: 500 }, remote)).toMatchObject({
      propagationSeconds: 1_000 + 100 + 20,
      graceSeconds: 1_000 + 100 + 100 + 20,
    });
    expect(resolvePolicy({ ...policy, storeOutageSeconds: 5_000 }, remote).graceSeconds).toBe(5_000 + 100 + 100 + 20);
  });

  test('the options of the codec have the documented defaults', () => {
    const ring = memoryRing();
    expect(checkOptions({ keyWrapper, ring })).toMatchObject({
      keyWrappers: [keyWrapper],
      ring,
      ringName: 'default',
      role: 'member',
      create: 'if-absent',
      acceptKeysCreatedAfter: undefined,
      format: 'sealring',
      accept: ['sealring'],
      wrapQuorum: 1,
      dangerouslyTrustStore: false,
      hedge: false,
      maxTokenLength: 262_144,
    });
    expect(checkOptions({ keyWrapper, ring, format: 'python' }).accept).toEqual(['python']);
    expect(checkOptions({ keyWrapper: [keyWrapper, keyWrapper], ring }).wrapQuorum).toBe(2);
  });

  test('the options and defaults are copied: later changes by the caller have no effect', () => {
    const accept: ('sealring' | 'python')[] = ['sealring'];
    const date = new Date('2026-01-01');
    const policy = { rotateEverySeconds: 90_000 };
    const wrappers = [keyWrapper];
    const checked = checkOptions({
      keyWrapper: wrappers,
      ring: memoryRing(),
      accept,
      acceptKeysCreatedAfter: date,
      policy,
    });
    accept.push('python');
    date.setTime(0);
    policy.rotateEverySeconds = 5;
    wrappers.pop();
    expect(checked.accept).toEqual(['sealring']);
    expect(checked.acceptKeysCreatedAfter).toEqual(new Date('2026-01-01'));
    expect(checked.policy.rotateEverySeconds).toBe(90_000);
    expect(checked.keyWrappers).toHaveLength(1);
    const parts = [checked, checked.policy, checked.accept, checked.keyWrappers];
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true);
  });
});
