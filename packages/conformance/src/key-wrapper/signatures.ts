import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { flipped, sameBytes, text } from '../bytes.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { bytesOf, type KeyWrapperChecks, type KeyWrapperTrial, NOWHERE } from './trial.ts';

const ENTRY = text('{"ring":"conformance","id":"AAAAAAAAAAAAAAAA","wraps":[{"provider":"conformance"}]}');
/** Lengths at which an adapter may truncate an entry: blocks, hashes, message limits of services, a page. */
const LENGTHS = [1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1_000, 4_095, 4_096, 4_097, 20_000];
/** Maximum number of bytes of a signature in which a bit is flipped. It is high, since verify is local. */
const FLIPS = 600;

/** Maximum number of further signatures, those made at the same time, and the time for them in milliseconds. */
const MANY = 640;
const AT_ONCE = 8;
const SIGNING_MS = 1_000;

/** Maximum length of a wrapped key or signature in a ring document, in bytes. */
export const MOST_STORED = 2_048;

type Signer = KeyWrapper & Required<Pick<KeyWrapper, 'sign' | 'verify'>>;

export const SIGNATURE_CHECKS: KeyWrapperChecks = {
  'WRAP-SIGN': async (trial) => {
    const [signer, peer] = [signerOf(trial, await trial.create()), signerOf(trial, await trial.create())];
    const entries = [
      ENTRY,
      ENTRY,
      new Uint8Array(32),
      new Uint8Array(40).fill(0x80),
      ...LENGTHS.map((length) => trial.random.bytes(length)),
    ];
    const signatures = await Promise.all(entries.map((entry) => signatureOf(trial, signer, entry)));
    for (const [i, entry] of entries.entries()) {
      const signature = signatures[i] as Uint8Array;
      const what = `its signature of ${entry.length} bytes`;
      expectThat(verdict(signer, entry, signature), `it does not verify ${what}`);
      expectThat(verdict(peer, entry, signature), `another instance does not verify ${what}`);
    }
    // Of two numbers of 32 bytes, one begins with a zero in every 128th signature.
    for (const _ of trial.inTime(Array.from({ length: MANY / AT_ONCE }), 0, SIGNING_MS)) {
      const more = Array.from({ length: AT_ONCE }, () => trial.random.bytes(ENTRY.length));
      await trial.all(
        more.map(async (entry) => {
          const signature = await signatureOf(trial, signer, entry);
          expectThat(verdict(peer, entry, signature), 'one of many signatures does not verify');
        }),
      );
    }
  },
  'WRAP-SIGN-BINDS': async (trial) => {
    const signer = signerOf(trial, await trial.create());
    const signature = await signatureOf(trial, signer, ENTRY);
    verdict(signer, ENTRY, signature);
    for (const [entry, what] of altered(ENTRY)) {
      expectThat(!verdict(signer, entry, signature), `a signature verifies for an entry ${what}`);
    }
    const others: readonly (readonly [Uint8Array, string])[] = [
      ...altered(signature),
      [new Uint8Array(signature.length), 'of zeros'],
      [new Uint8Array(signature.length).fill(0xff), 'of 0xff'],
      [trial.random.bytes(signature.length), 'of random bytes'],
      [ENTRY, 'that is the entry'],
      [await signatureOf(trial, signer, text('another entry')), 'of another entry'],
    ];
    for (const [bytes, what] of others) {
      expectThat(!verdict(signer, ENTRY, bytes), `an entry verifies with a signature ${what}`);
    }
    const isNothingGood = await trial.settle(() => signer.verify(new Uint8Array(0), new Uint8Array(0)), 'verify');
    expectThat(!('value' in isNothingGood && isNothingGood.value), 'an empty entry verifies with an empty signature');
    await tellsApart(trial, signer);
    await tellsKeys(trial, signer, signature);
  },
  'WRAP-VERIFY-LOCAL': async (trial) => {
    const signer = signerOf(trial, await trial.create());
    const unreachable = signerOf(trial, await trial.create('createUnreachable'));
    const signature = await signatureOf(trial, signer, ENTRY);
    expectThat(verdict(unreachable, ENTRY, signature), `${NOWHERE}, a valid signature does not verify`);
    expectThat(!verdict(unreachable, ENTRY, flipped(signature, 0)), `${NOWHERE}, a changed signature verifies`);
    await trial.refusal(() => unreachable.sign(ENTRY), `sign, ${NOWHERE}`);
    const words = `${NOWHERE}, a valid signature does not verify after a call that failed`;
    expectThat(verdict(unreachable, ENTRY, signature), words);
  },
};

/**
 * Expects signatures of another key to be refused. Only deterministic signatures show that two KMS keys sign
 * differently.
 */
async function tellsKeys(trial: KeyWrapperTrial, signer: Signer, signature: Uint8Array): Promise<void> {
  const other = await trial.create('createOtherKey');
  if (other.sign === undefined || other.verify === undefined) return;
  const [again, theirs] = [await signatureOf(trial, signer, ENTRY), await signatureOf(trial, other as Signer, ENTRY)];
  if (!sameBytes(again, signature) || sameBytes(theirs, signature)) return;
  expectThat(!verdict(signer, ENTRY, theirs), 'a signature of another KMS key verifies');
}

/**
 * Checks entries with a common prefix or similar text.
 * @throws {Finding} if the signature of one entry verifies for another.
 */
async function tellsApart(trial: KeyWrapperTrial, signer: Signer): Promise<void> {
  const alike: readonly (readonly [Uint8Array, Uint8Array, string])[] = [
    ...LENGTHS.map((length) => {
      const entry = trial.random.bytes(length);
      return [entry, flipped(entry, length - 1), `of ${length} bytes with a different last byte`] as const;
    }),
    [Uint8Array.of(0x61, 0x80), Uint8Array.of(0x61, 0x81), 'of other bytes that are not text'],
    [text('\u00e9'), text('e\u0301'), 'with an é of two code points'],
    [text('a'), text('A'), 'in different letter case'],
    [text('a'), text('a '), 'with a space after it'],
    [text('a'), text('a\n'), 'with a newline after it'],
    [text('a\nb'), text('a\r\nb'), 'with a different line ending'],
    [text('a'), Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), 'with a byte order mark'],
    [Uint8Array.of(1), Uint8Array.of(0, 1), 'with a zero before it'],
    [Uint8Array.of(1), Uint8Array.of(1, 0), 'with a zero after it'],
    [text('{"a":1,"b":2}'), text('{"b":2,"a":1}'), 'with its members in a different order'],
    [text('{"a":1}'), text('{"a": 1}'), 'with a space in its JSON'],
    [text('7a7a'), text('zz'), 'with its hexadecimal text decoded'],
    [text('enp6'), text('zzz'), 'with its base64 text decoded'],
  ];
  const signed = alike.map(async ([one, other, what]) => {
    const signature = await signatureOf(trial, signer, one);
    verdict(signer, one, signature);
    expectThat(!verdict(signer, other, signature), `a signature verifies for an entry ${what}`);
  });
  await Promise.all(signed);
}

function signerOf(trial: KeyWrapperTrial, keyWrapper: KeyWrapper): Signer {
  const { supports } = keyWrapper;
  if (keyWrapper.sign !== undefined && keyWrapper.verify !== undefined) return keyWrapper as Signer;
  if (supports.authenticated && keyWrapper.sign === undefined) throw new NotApplicable('its unwraps are authenticated');
  if (!trial.supports.signatures) throw new NotApplicable('supports.signatures is false');
  throw new Finding(`supports.authenticated is ${supports.authenticated}, but sign or verify is missing`);
}

async function signatureOf(trial: KeyWrapperTrial, signer: Signer, entry: Uint8Array): Promise<Uint8Array> {
  const what = `sign of ${entry.length} bytes`;
  const signature = bytesOf(await trial.answer(() => signer.sign(Uint8Array.from(entry)), what), what);
  expectThat(signature.length > 0, `${what} returned no bytes`);
  const words = `${what} returned ${signature.length} bytes, more than the ${MOST_STORED} that a ring stores`;
  expectThat(signature.length <= MOST_STORED, words);
  return signature;
}

/** The result of `verify`. @throws {Finding} if it is not a boolean. */
function verdict(signer: Signer, entry: Uint8Array, signature: Uint8Array): boolean {
  let said: unknown;
  try {
    said = signer.verify(entry, signature);
  } catch (error) {
    throw new Finding(`verify threw ${describeThrown(error)}`);
  }
  if (types.isPromise(said)) said.catch(() => undefined);
  expectThat(typeof said === 'boolean', `verify returned ${kindOf(said)}, not true or false`);
  return said;
}

function altered(bytes: Uint8Array): readonly (readonly [Uint8Array, string])[] {
  const step = Math.ceil(bytes.length / FLIPS);
  const places = Array.from({ length: Math.ceil(bytes.length / step) }, (_, i) => i * step);
  return [
    ...places.map((at) => [flipped(bytes, at, 1 << (at % 8)), `with byte ${at + 1} changed`] as const),
    [flipped(bytes, bytes.length - 1), 'with its last byte changed'],
    [bytes.slice(0, -1), 'without its last byte'],
    [bytes.slice(1), 'without its first byte'],
    [bytes.slice(0, bytes.length >> 1), 'cut in half'],
    [Uint8Array.of(...bytes, 0), 'with a zero after it'],
    [Uint8Array.of(1, ...bytes), 'with a byte before it'],
    [Uint8Array.of(...bytes, ...bytes), 'twice over'],
    [new Uint8Array(0), 'of no bytes'],
  ];
}
