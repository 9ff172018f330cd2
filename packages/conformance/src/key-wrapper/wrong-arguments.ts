import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { sameBytes } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { expectArgumentError, expectArgumentErrorOrCorrupt } from './errors.ts';
import { bytesOf, CONTEXT, type KeyWrapperChecks, type KeyWrapperTrial, type Made, OPTIONS } from './trial.ts';

type Wrong = readonly [what: string, start: () => unknown];
type Given = readonly (readonly [what: string, given: unknown])[];

const LENGTHS = [0, 1, 16, 24, 31, 33, 48, 63, 65, 96, 128, 4_096];

export const WRONG_ARGUMENT_CHECKS: KeyWrapperChecks = {
  'WRAP-KEY-LENGTH': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    for (const length of keyWrapper.supports.context ? [...LENGTHS, 64] : LENGTHS) {
      const start = (): unknown => keyWrapper.wrap(trial.random.bytes(length), OPTIONS);
      await expectRefused(trial, [`wrap of ${length} bytes`, start]);
    }
  },
  'WRAP-KEY-CONSTANT': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    if (!keyWrapper.supports.context) {
      throw new NotApplicable('supports.context is false, so the ring passes more than a data key');
    }
    for (const byte of [0, 1, 0x20, 0x41, 0x7f, 0x80, 0xff]) {
      const start = (): unknown => keyWrapper.wrap(new Uint8Array(32).fill(byte), OPTIONS);
      await expectRefused(trial, [`wrap of 32 bytes that are all ${byte}`, start]);
    }
  },
  'WRAP-ARGUMENTS': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    // A valid wrapped key and a reachable service show whether an instance accepts wrong arguments.
    const opener = await trial.create();
    const made = await trial.make(opener);
    const wrong = notBytes(made.dataKey);
    const noContext: Given = [
      ['without a context', {}],
      ['with null as context', { context: null }],
    ];
    await expectRefused(
      trial,
      ...wrong.map(([what, given]): Wrong => [`wrap of ${what}`, () => keyWrapper.wrap(given as never, OPTIONS)]),
      ...withOptions(keyWrapper, made, [
        ['without options', undefined],
        ['with null as options', null],
        ['with text as options', 'text'],
        ...(keyWrapper.supports.context ? noContext : []),
      ]),
      ...(keyWrapper.sign ? wrong : []).map(
        ([what, given]): Wrong => [`sign of ${what}`, () => keyWrapper.sign?.(given as never)],
      ),
    );
    for (const [asked, keyId] of [
      [opener, made.wrapped.keyId],
      [keyWrapper, keyWrapper.keyId],
    ] as const) {
      for (const [what, given, isSpelling = false] of wrongRecords({ ...made.wrapped, keyId })) {
        const words = `unwrap of ${what}`;
        const outcome = await trial.settle(() => asked.unwrap(given as never, OPTIONS), words);
        // Other representations of the bytes may unwrap, or be refused as corrupt, since they may come from a store.
        if ('error' in outcome) expectArgumentErrorOrCorrupt(outcome.error, words);
        else
          expectThat(isSpelling && sameBytes(bytesOf(outcome.value, words), made.dataKey), `${words} was not refused`);
      }
    }
  },
  'WRAP-ARGUMENT-CONTEXT': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    if (!keyWrapper.supports.context) {
      throw new NotApplicable('supports.context is false, so the ring binds the context');
    }
    const contexts: Given = [
      ['a number in it', { ...CONTEXT, number: 1 }],
      ['null in it', { ...CONTEXT, nothing: null }],
      ['undefined in it', { ...CONTEXT, missing: undefined }],
      ['an array in it', { ...CONTEXT, list: ['x'] }],
      ['bytes in it', { ...CONTEXT, bytes: Uint8Array.of(1) }],
      ['text instead of an object', 'text'],
      ['an array instead of an object', Object.entries(CONTEXT)],
    ];
    const options = contexts.map(([what, context]) => [`under a context with ${what}`, { context }] as const);
    await expectRefused(trial, ...withOptions(keyWrapper, await trial.make(await trial.create()), options));
  },
  'WRAP-ARGUMENT-BYTES': async (trial) => {
    const keyWrapper = await trial.create();
    const { wrapped } = await trial.make(keyWrapper);
    for (const [what, given] of notBytes(wrapped.wrapped)) {
      const words = `unwrap of ${what} as wrapped`;
      const start = (): unknown => keyWrapper.unwrap({ ...wrapped, wrapped: given as never }, OPTIONS);
      expectArgumentErrorOrCorrupt(await trial.refusal(start, words), words);
    }
    // A store may hold a damaged record, but passing no record at all is the caller's mistake.
    const none = NO_RECORDS.map(
      ([what, given]): Wrong => [`unwrap of ${what}`, () => keyWrapper.unwrap(given as never, OPTIONS)],
    );
    await expectRefused(trial, ...none);
  },
};

/** Every call that accepts a context, with these options. */
function withOptions(keyWrapper: KeyWrapper, { dataKey, wrapped }: Made, options: Given): readonly Wrong[] {
  return options.flatMap(([what, given]): Wrong[] => [
    [`wrap ${what}`, () => keyWrapper.wrap(dataKey, given as never)],
    [`unwrap ${what}`, () => keyWrapper.unwrap(wrapped, given as never)],
    ...(keyWrapper.generate ? [[`generate ${what}`, () => keyWrapper.generate?.(given as never)] as const] : []),
  ]);
}

const NO_RECORDS: Given = [
  ['undefined', undefined],
  ['null', null],
  ['text', 'text'],
];

function wrongRecords(record: WrappedKey): readonly (readonly [what: string, given: unknown, isSpelling?: boolean])[] {
  return [
    ...NO_RECORDS,
    ['no members', {}],
    ...notBytes(record.wrapped).map(([what, wrapped]) => [`${what} as wrapped`, { ...record, wrapped }, true] as const),
    ['a number as keyId', { ...record, keyId: 7 }],
    ['no keyId', { ...record, keyId: undefined }],
    ['an array as keyId', { ...record, keyId: [record.keyId] }],
    ['no provider', { ...record, provider: undefined }],
    ['an array as provider', { ...record, provider: [record.provider] }],
  ];
}

function notBytes(bytes: Uint8Array): Given {
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
    ['an ArrayBuffer', Uint8Array.from(bytes).buffer],
    ['a DataView', new DataView(Uint8Array.from(bytes).buffer)],
    ['an object of numbers', Object.assign({ length: bytes.length }, bytes)],
    ['a Uint16Array', Uint16Array.from({ length: bytes.length / 2 }, (_, i) => (bytes[i] ?? 0) * 257)],
    ['a Uint16Array with the same numbers', Uint16Array.from(bytes)],
    ['a number', bytes.length],
  ];
}

async function expectRefused(trial: KeyWrapperTrial, ...calls: readonly Wrong[]): Promise<void> {
  for (const [what, start] of calls) expectArgumentError(await trial.refusal(start, what), what);
}
