import type { WrapOptions } from '@sealring/core';
import { bothWays, flipped, sameBytes, text, withBitFlipped } from '../bytes.ts';
import type { Check } from '../requirement.ts';
import { expectArgumentErrorOrCorrupt, expectKind } from './errors.ts';
import { MOST_STORED } from './signatures.ts';
import { type BadUnwraps, type KeyWrapperChecks, type KeyWrapperTrial, type Made, OPTIONS } from './trial.ts';

/** Number of bytes at either end, and of bytes between the ends, in which a bit is flipped. Each flip costs a call. */
const ENDS = 16;
const BETWEEN = 8;
/** For a remote service, the maximum length of a wrapped key in which the check changes every byte. */
const EVERY_BYTE = 256;
/** Leading bytes that often hold a version and flags; every bit of them is flipped. */
const HEAD = 4;
/** Time for flipping every bit of a wrapped key, if the wrapper calls no service, in milliseconds. */
const EVERY_BIT_MS = 1_500;
/** Minimum number of alterations that are tried, even if they take longer. */
const LEAST_TRIED = 8;
/** Offsets, from either end, at which two wrapped keys are spliced: lengths of nonces, tags and headers. */
const SEAMS = [12, 16, -16, -12];

/** Number of refusals of one kind in sequence. */
const TIMES = 12;

type Altered = readonly [Uint8Array, string];

export const INTEGRITY_CHECKS: KeyWrapperChecks = {
  'WRAP-BIT-FLIP': alterations((wrapped, trial) => {
    const [version = 0] = wrapped;
    const heads = [0, 1, 2, 0xff, (version + 1) & 0xff, (version + 0xff) & 0xff];
    const { remote } = trial.supports;
    const all = Array.from(wrapped.keys());
    const between = Array.from({ length: BETWEEN }, () => trial.random.below(wrapped.length));
    const some = [...new Set([...all.slice(0, ENDS), ...all.slice(-ENDS), ...between])];
    const places = remote && wrapped.length > EVERY_BYTE ? some : all;
    // A wrapper may ignore single bits at the start and at the end.
    const bitsOf = (at: number): readonly number[] =>
      remote && at >= HEAD && at < wrapped.length - 1 ? [trial.random.below(8)] : [0, 1, 2, 3, 4, 5, 6, 7];
    const flips = places.flatMap((at) =>
      bitsOf(at).map((bit): Altered => {
        const words = `with bit ${bit} of byte ${at + 1} of ${wrapped.length} flipped`;
        return [flipped(wrapped, at, 1 << bit), words];
      }),
    );
    const others = heads.map(
      (byte): Altered => [flipped(wrapped, 0, byte ^ version), `with ${byte} as its first byte`],
    );
    // A swap keeps the sum and the XOR of the bytes.
    const other = all.find((at) => at > 12 && wrapped[at] !== wrapped[12]) ?? 0;
    const exchanged = Uint8Array.from(
      wrapped,
      (byte, at) => wrapped[at === 12 ? other : at === other ? 12 : at] ?? byte,
    );
    return [...flips, [exchanged, 'with two of its bytes swapped'], ...others];
  }),
  'WRAP-SPELLING': alterations((wrapped) => spellings(Buffer.from(wrapped))),
  'WRAP-TRUNCATION': alterations((wrapped) => [
    ...[1, 2, 4, 8, 12, 16].map((cut): Altered => [wrapped.slice(0, -cut), `without its last ${cut} bytes`]),
    // An RSA ciphertext is a number, which stays the same without a leading zero.
    ...(wrapped[0] === 0 ? [] : [1, 2, 12, 16]).map(
      (cut): Altered => [wrapped.slice(cut), `without its first ${cut} bytes`],
    ),
    [wrapped.slice(0, wrapped.length >> 1), 'cut in half'],
    [wrapped.slice(0, 1), 'cut to one byte'],
  ]),
  'WRAP-EXTENSION': alterations((wrapped) => [
    ...[0, 0x0a, 0x20, 0x3d].map(
      (byte): Altered => [Uint8Array.of(...wrapped, byte), `with the byte ${byte} after it`],
    ),
    [Uint8Array.of(...wrapped, ...new Uint8Array(16)), 'with 16 zeros after it'],
    [Uint8Array.of(1, ...wrapped), 'with the byte 1 before it'],
    [Uint8Array.of(0x20, ...wrapped), 'with a space before it'],
    [Uint8Array.of(...wrapped, ...wrapped), 'twice over'],
    [Uint8Array.of(...wrapped, ...new Uint8Array(Math.max(1, MOST_STORED - wrapped.length))), 'with zeros after it'],
  ]),
  'WRAP-EMPTY': async (trial) => {
    const { keyWrapper, dataKey, wrapped } = await trial.createOpened();
    const bare = Buffer.from(dataKey);
    const { length } = wrapped.wrapped;
    for (const [bytes, what] of [
      [new Uint8Array(0), 'an empty wrapped key'],
      ...[1, 12, 16, 32, 48, 64, length].map((most) => [trial.random.bytes(most), `${most} random bytes`] as const),
      [bare, 'a data key that was never wrapped'],
      [text(bare.toString('hex')), 'a data key in hexadecimal text'],
      [text(bare.toString('base64')), 'a data key in base64'],
    ] as const) {
      // An argument error is also correct.
      const start = (): unknown => keyWrapper.unwrap({ ...wrapped, wrapped: bytes }, OPTIONS);
      expectArgumentErrorOrCorrupt(await trial.refusal(start, what), what);
    }
  },
  'WRAP-SPLICE': async (trial) => {
    const keyWrapper = await trial.create();
    const [one, other] = [await trial.make(keyWrapper), (await trial.makeEach(keyWrapper)).at(-1) as Made];
    for (const made of [one, other]) await trial.expectOpens(keyWrapper, made);
    const middle = one.wrapped.wrapped.length >> 1;
    for (const [head, tail] of bothWays(one, other)) {
      await trial.each([middle, ...SEAMS], async (at) => {
        const bytes = Uint8Array.of(...head.wrapped.wrapped.slice(0, at), ...tail.wrapped.wrapped.slice(at));
        // The result may equal one of the two: texts may share a prefix, and numbers a suffix.
        if ([one, other].some(({ wrapped }) => Buffer.from(wrapped.wrapped).equals(bytes))) return;
        const words = `a wrapped key up to byte ${at}, then another one,`;
        await trial.expectCorrupt(keyWrapper, { ...head.wrapped, wrapped: bytes }, words);
      });
    }
  },
  'WRAP-AFTER-REFUSAL': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const { dataKey } = made;
    const bad = await trial.refusedUnwraps(keyWrapper, made);
    const refused: BadUnwraps = [
      ...bad.map(([words, start]) => [`an unwrap ${words}`, start] as const),
      [
        'an unwrap of another KMS key’s wrapped key',
        () => keyWrapper.unwrap({ ...made.wrapped, keyId: `x${made.wrapped.keyId}` }, OPTIONS),
      ],
      ['a wrap with an aborted signal', () => keyWrapper.wrap(dataKey, { ...OPTIONS, signal: AbortSignal.abort() })],
      ['a wrap of 31 bytes', () => keyWrapper.wrap(dataKey.slice(0, 31), OPTIONS)],
      ['a wrap aborted in progress', () => abortedInProgress((options) => keyWrapper.wrap(dataKey, options))],
      ['an unwrap aborted in progress', () => abortedInProgress((options) => keyWrapper.unwrap(made.wrapped, options))],
      ['an unwrap without options', () => keyWrapper.unwrap(made.wrapped, undefined as never)],
    ];
    await trial.each(refused, async ([words, refuse]) => {
      // More refusals than most circuit breakers allow.
      await trial.each(Array.from({ length: TIMES }), async () => void (await trial.settle(refuse, words)));
      for (const { name, start } of trial.calls(keyWrapper, made)) {
        await trial.answer(start, `after ${words}, ${name}`);
      }
    });
    await trial.expectOpens(keyWrapper, made, 'a valid wrapped key, after invalid ones,');
    // Conversely, an invalid wrapped key must not unwrap because a valid one was unwrapped just before it.
    for (const [words, start] of bad) {
      const what = `after a valid unwrap, unwrap ${words}`;
      expectKind(await trial.refusal(start, what), 'corrupt', what);
    }
  },
};

function abortedInProgress(start: (options: WrapOptions) => unknown): unknown {
  const controller = new AbortController();
  const call = start({ ...OPTIONS, signal: controller.signal });
  controller.abort();
  return call;
}

/** Other texts that a lenient decoder reads as the same bytes. None if the wrapped key is not text. */
function spellings(wrapped: Buffer): readonly Altered[] {
  const spelt = wrapped.toString('latin1');
  if (!/^[\t\n\r\u0020-\u007e]+$/.test(spelt)) return [];
  const middle = spelt.length >> 1;
  const swapped = spelt.replaceAll(/[-_+/]/g, (char) => ({ '-': '+', _: '/', '+': '-', '/': '_' })[char] ?? char);
  const head = spelt.slice(0, ENDS);
  const end = /([^=])=*$/.exec(spelt)?.[1] ?? '';
  // Some bits of the last character may not belong to any byte.
  const last = [...Array.from('ABCDEFGHQRSTgwxyz019'), ...withBitFlipped(end)].map((char): [string, string] => [
    spelt.replace(/[A-Za-z0-9+/_-](=*)$/, `${char}$1`),
    `with ${char} as its last character`,
  ]);
  const variants: [string, string][] = [
    [`${spelt}=`, 'with padding added'],
    [spelt.replace(/=+$/, ''), 'without its padding'],
    [`${spelt}\n`, 'with a newline after it'],
    [` ${spelt}`, 'with a space before it'],
    [`${spelt.slice(0, middle)}\n${spelt.slice(middle)}`, 'with a newline in it'],
    [`${spelt.slice(0, middle)}!${spelt.slice(middle)}`, 'with a character in it that is not base64'],
    [swapped, 'in the other base64 alphabet'],
    [spelt.toUpperCase(), 'in upper case'],
    [spelt.toLowerCase(), 'in lower case'],
    [head.toUpperCase() + spelt.slice(ENDS), 'with its beginning in upper case'],
    ...Array.from(head).flatMap((char, i): [string, string][] =>
      /\d/.test(char)
        ? [
            `${spelt.slice(0, i)}${(Number(char) + 1) % 10}${spelt.slice(i + 1)}`,
            `${spelt.slice(0, i)}0${spelt.slice(i)}`,
          ].map((one) => [one, `with a different digit as character ${i + 1}`])
        : [],
    ),
    [spelt.replace(/^\{/, '{"x":1,'), 'with an extra member in its JSON'],
    [spelt.replace(/\}$/, ',"x":1}'), 'with an extra last member in its JSON'],
    [spelt.replace(/^\{("[^"]*":)/, '{$10,$1'), 'with a duplicate member in its JSON'],
    ...last,
  ];
  return variants.map(([one, what]) => [Buffer.from(one, 'latin1'), what]);
}

/** Wraps and unwraps once, and expects each altered form to be refused as corrupt. */
function alterations(
  alter: (wrapped: Uint8Array, trial: KeyWrapperTrial) => readonly Altered[],
): Check<KeyWrapperTrial> {
  return async (trial) => {
    // A cached unwrap must not make a similar wrapped key valid.
    for (const { keyWrapper, ...made } of await trial.createEach()) {
      const forms = alter(made.wrapped.wrapped, trial).filter(([bytes]) => !sameBytes(bytes, made.wrapped.wrapped));
      // Only a few forms are tried for generate, which usually wraps as wrap does.
      const tried = made.by === 'wrap' ? forms : [...forms.slice(0, 2), ...forms.slice(-2)];
      await trial.each(
        trial.supports.remote ? tried : trial.inTime(tried, LEAST_TRIED, EVERY_BIT_MS),
        ([wrapped, what]) => trial.expectCorrupt(keyWrapper, { ...made.wrapped, wrapped }, `a wrapped key ${what}`),
      );
    }
  };
}
