import { types } from 'node:util';
import type { WrappedKey } from '@sealring/core';
import { sameBytes } from '../bytes.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import {
  CONTEXT,
  expectArgumentError,
  expectArgumentErrorOrCorrupt,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  OPTIONS,
} from './trial.ts';

type Wrong = readonly [what: string, start: () => unknown];

export const WRONG_ARGUMENT_CHECKS: KeyWrapperChecks = {
  'WRAP-KEY-LENGTH': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    const lengths = [0, 1, 16, 24, 31, 33, 48, 63, 65, 96, 128, 4_096, ...(keyWrapper.supports.context ? [64] : [])];
    await allRefused(
      trial,
      lengths.map((length) => [`wrap of ${length} bytes`, () => keyWrapper.wrap(trial.random.bytes(length), OPTIONS)]),
    );
  },
  'WRAP-KEY-CONSTANT': async (trial) => {
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
  'WRAP-ARGUMENTS': async (trial) => {
    const keyWrapper = await trial.createUnasked();
    // One that unwraps, at one that may ask: what is taken for it shows.
    const opener = await trial.create();
    const { dataKey, wrapped: record } = await trial.make(opener);
    const wrong = notBytes(dataKey);
    const options: readonly (readonly [string, unknown])[] = [
      ['without options', undefined],
      ['with null for options', null],
      ['with text for options', 'text'],
      ...(keyWrapper.supports.context
        ? [['without a context', {}] as const, ['with null for a context', { context: null }] as const]
        : []),
    ];
    await allRefused(trial, [
      ...wrong.map(([what, given]): Wrong => [`wrap of ${what}`, () => keyWrapper.wrap(given as never, OPTIONS)]),
      ...options.flatMap(([what, given]): Wrong[] => [
        [`wrap ${what}`, () => keyWrapper.wrap(dataKey, given as never)],
        [`unwrap ${what}`, () => keyWrapper.unwrap(record, given as never)],
        ...(keyWrapper.generate ? [[`generate ${what}`, () => keyWrapper.generate?.(given as never)] as const] : []),
      ]),
      ...(keyWrapper.sign ? wrong : []).map(
        ([what, given]): Wrong => [`sign of ${what}`, () => keyWrapper.sign?.(given as never)],
      ),
    ]);
    for (const [asked, keyId] of [
      [opener, record.keyId],
      [keyWrapper, keyWrapper.keyId],
    ] as const) {
      for (const [what, given, isSpelling = false] of wrongRecords({ ...record, keyId })) {
        const words = `unwrap of ${what}`;
        const outcome = await trial.settle(() => asked.unwrap(given as never, OPTIONS), words);
        // Other spellings of its bytes may unwrap; what is refused may have come out of a store.
        if ('error' in outcome) expectArgumentErrorOrCorrupt(outcome.error, words);
        else expectThat(isSpelling && isDataKey(outcome.value, dataKey), `${words} was not refused`);
      }
    }
  },
  'WRAP-ARGUMENT-CONTEXT': async (trial) => {
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
  'WRAP-REJECTS': async (trial) => {
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
  },
};

function isDataKey(value: unknown, dataKey: Uint8Array): boolean {
  return types.isUint8Array(value) && sameBytes(value, dataKey);
}

function wrongRecords(record: WrappedKey): readonly (readonly [what: string, given: unknown, isSpelling?: boolean])[] {
  return [
    ['undefined', undefined],
    ['null', null],
    ['text', 'text'],
    ['no members', {}],
    ...notBytes(record.wrapped).map(([what, wrapped]) => [`${what} as wrapped`, { ...record, wrapped }, true] as const),
    ['a number as keyId', { ...record, keyId: 7 }],
    ['no keyId', { ...record, keyId: undefined }],
    ['an array as keyId', { ...record, keyId: [record.keyId] }],
    ['no provider', { ...record, provider: undefined }],
    ['an array as provider', { ...record, provider: [record.provider] }],
  ];
}

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
    ['an ArrayBuffer', Uint8Array.from(bytes).buffer],
    ['a DataView', new DataView(Uint8Array.from(bytes).buffer)],
    ['an object of numbers', Object.assign({ length: bytes.length }, bytes)],
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
