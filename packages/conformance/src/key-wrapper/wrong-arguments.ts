import { Finding, must, NotApplicable, should } from '../requirement.ts';
import {
  CONTEXT,
  clause,
  expectArgumentError,
  expectArgumentErrorOrCorrupt,
  type KeyWrapperRequirement,
  type KeyWrapperTrial,
  KIT,
  OPTIONS,
} from './trial.ts';

type Wrong = readonly [what: string, start: () => unknown];

/** Calls that nobody should make, tried where asking the service would show. */
export const WRONG_ARGUMENT_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must(
    'WRAP-KEY-LENGTH',
    'A data key of another length is refused by a TypeError or RangeError, before any call.',
    clause(4, 6),
    async (trial) => {
      const keyWrapper = await trial.createUnasked();
      const lengths = [0, 1, 16, 24, 31, 33, 48, 63, 65, 128, ...(keyWrapper.supports.context ? [64] : [])];
      await allRefused(
        trial,
        lengths.map((length) => [
          `wrap of ${length} bytes`,
          () => keyWrapper.wrap(trial.random.bytes(length), OPTIONS),
        ]),
      );
    },
  ),
  must(
    'WRAP-KEY-CONSTANT',
    'One byte 32 times is refused as a data key by a TypeError or RangeError, before any call.',
    clause(4, 6),
    async (trial) => {
      const keyWrapper = await trial.createUnasked();
      if (!keyWrapper.supports.context) {
        throw new NotApplicable('supports.context is false: the ring hands over more than a data key');
      }
      await allRefused(
        trial,
        [0, 1, 0x20, 0x41, 0x7f, 0x80, 0xff].map((byte) => [
          `wrap of 32 times the byte ${byte}`,
          () => keyWrapper.wrap(new Uint8Array(32).fill(byte), OPTIONS),
        ]),
      );
    },
  ),
  must(
    'WRAP-ARGUMENTS',
    'Wrong arguments are refused by a TypeError or RangeError, before any call.',
    clause(4),
    async (trial) => {
      const keyWrapper = await trial.createUnasked();
      const dataKey = trial.dataKey(keyWrapper);
      const wrong = notBytes(dataKey);
      const options: readonly (readonly [string, unknown])[] = [
        ['without options', undefined],
        ['with null for options', null],
        ['with text for options', 'text'],
        ...(keyWrapper.supports.context
          ? [['without a context', {}] as const, ['with null for a context', { context: null }] as const]
          : []),
      ];
      const record = { provider: keyWrapper.provider, keyId: keyWrapper.keyId, wrapped: trial.random.bytes(64) };
      await allRefused(trial, [
        ...wrong.map(([what, given]): Wrong => [`wrap of ${what}`, () => keyWrapper.wrap(given as never, OPTIONS)]),
        ...options.flatMap(([what, given]): Wrong[] => [
          [`wrap ${what}`, () => keyWrapper.wrap(dataKey, given as never)],
          ...(keyWrapper.generate ? [[`generate ${what}`, () => keyWrapper.generate?.(given as never)] as const] : []),
        ]),
        ...(keyWrapper.sign ? wrong : []).map(
          ([what, given]): Wrong => [`sign of ${what}`, () => keyWrapper.sign?.(given as never)],
        ),
      ]);
      const records: readonly (readonly [string, unknown])[] = [
        ['undefined', undefined],
        ['null', null],
        ['text', 'text'],
        ['no members', {}],
        ...wrong.map(([what, wrapped]) => [`${what} as wrapped`, { ...record, wrapped }] as const),
        ['a number as keyId', { ...record, keyId: 7 }],
        ['no provider', { ...record, provider: undefined }],
      ];
      for (const [what, given] of records) {
        const words = `unwrap of ${what}`;
        // It may have come out of a store.
        const error = await trial.refusal(() => keyWrapper.unwrap(given as never, OPTIONS), words);
        expectArgumentErrorOrCorrupt(error, words);
      }
    },
  ),
  should(
    'WRAP-ARGUMENT-CONTEXT',
    'A context of anything but strings is refused by a TypeError or RangeError.',
    clause(4),
    async (trial) => {
      const keyWrapper = await trial.createUnasked();
      if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
      const { wrapped } = await trial.make(await trial.create());
      const dataKey = trial.dataKey(keyWrapper);
      const contexts: readonly (readonly [unknown, string])[] = [
        [{ ...CONTEXT, number: 1 }, 'a number in it'],
        [{ ...CONTEXT, nothing: null }, 'null in it'],
        [{ ...CONTEXT, missing: undefined }, 'undefined in it'],
        [{ ...CONTEXT, list: ['x'] }, 'an array in it'],
        [{ ...CONTEXT, bytes: Uint8Array.of(1) }, 'bytes in it'],
        ['text', 'text for an object'],
      ];
      await allRefused(
        trial,
        contexts.flatMap(([context, what]): Wrong[] => [
          [`wrap under a context with ${what}`, () => keyWrapper.wrap(dataKey, { context } as never)],
          [`unwrap under a context with ${what}`, () => keyWrapper.unwrap(wrapped, { context } as never)],
          ...(keyWrapper.generate
            ? [[`generate under a context with ${what}`, () => keyWrapper.generate?.({ context } as never)] as const]
            : []),
        ]),
      );
    },
  ),
  should('WRAP-REJECTS', 'A failure is a rejection, not thrown before there is a promise.', KIT, async (trial) => {
    const keyWrapper = await trial.createUnasked();
    const made = await trial.make(await trial.create());
    const signal = AbortSignal.abort();
    const calls: Wrong[] = [
      ['wrap of nothing', () => keyWrapper.wrap(undefined as never, OPTIONS)],
      ['wrap without options', () => keyWrapper.wrap(made.dataKey, undefined as never)],
      ['unwrap of nothing', () => keyWrapper.unwrap(undefined as never, OPTIONS)],
      ['unwrap without options', () => keyWrapper.unwrap(made.wrapped, undefined as never)],
      ['generate without options', () => keyWrapper.generate?.(undefined as never)],
      ['sign of nothing', () => keyWrapper.sign?.(undefined as never)],
      ['sign with text for options', () => keyWrapper.sign?.(made.dataKey, 'text' as never)],
      ...trial.calls(keyWrapper, made).map(({ name, start }): Wrong => [`an aborted ${name}`, () => start(signal)]),
    ];
    for (const [what, start] of calls) await expectRejection(trial, what, start);
  }),
];

/** Values that an adapter may take for bytes. */
function notBytes(bytes: Uint8Array): readonly (readonly [string, unknown])[] {
  const buffer = Buffer.from(bytes);
  return [
    ['nothing', undefined],
    ['null', null],
    ['text', 'a'.repeat(bytes.length)],
    ['any text', Array.from(bytes, (byte) => String.fromCharCode(0x20 + (byte % 95))).join('')],
    ['hexadecimal text', buffer.toString('hex')],
    ['base64 text', buffer.toString('base64')],
    ['binary text', buffer.toString('latin1')],
    ['an array of numbers', [...bytes]],
    ['an object with a length', { length: bytes.length }],
    ['the JSON of a Buffer', buffer.toJSON()],
    ['a Uint16Array', Uint16Array.from({ length: bytes.length / 2 }, (_, i) => (bytes[i] ?? 0) * 257)],
    ['a number', bytes.length],
  ];
}

async function allRefused(trial: KeyWrapperTrial, calls: readonly Wrong[]): Promise<void> {
  for (const [what, start] of calls) expectArgumentError(await trial.refusal(start, what), what);
}

async function expectRejection(trial: KeyWrapperTrial, what: string, start: () => unknown): Promise<void> {
  let call: unknown;
  try {
    call = start();
  } catch {
    throw new Finding(`${what} threw, before there was a promise`);
  }
  await trial.settle(() => call, what);
}
