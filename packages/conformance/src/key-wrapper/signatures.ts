import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { text } from '../codec/payloads.ts';
import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeError, type KeyWrapperTrial, kindOf } from './trial.ts';

const ENTRY = text('{"ring":"conformance","id":"AAAAAAAAAAAAAAAA"}');

/** A key wrapper that signs and verifies. */
type Signer = KeyWrapper & Required<Pick<KeyWrapper, 'sign' | 'verify'>>;

/** Proof of origin, where an unwrap is none. */
export const SIGNATURE_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-SIGN',
    async run(trial) {
      const [signer, peer] = [signerOf(trial, await trial.create()), signerOf(trial, await trial.create())];
      const signature = await signatureOf(trial, signer, ENTRY);
      expectThat(verdict(signer, ENTRY, signature), 'it does not verify its own signature');
      expectThat(verdict(peer, ENTRY, signature), 'another instance does not verify its signature');
    },
  },
  {
    id: 'WRAP-SIGN-BINDS',
    async run(trial) {
      const signer = signerOf(trial, await trial.create());
      const signature = await signatureOf(trial, signer, ENTRY);
      for (const [entry, what] of [...altered(ENTRY), [new Uint8Array(0), 'of no bytes'] as const]) {
        expectThat(!verdict(signer, entry, signature), `a signature verifies for an entry ${what}`);
      }
      for (const [bytes, what] of [
        ...altered(signature),
        [new Uint8Array(0), 'of no bytes'] as const,
        [new Uint8Array(signature.length), 'of zeros'] as const,
        [await signatureOf(trial, signer, text('another entry')), 'of another entry'] as const,
      ]) {
        expectThat(!verdict(signer, ENTRY, bytes), `an entry verifies with a signature ${what}`);
      }
    },
  },
  {
    id: 'WRAP-VERIFY-LOCAL',
    async run(trial) {
      const signer = signerOf(trial, await trial.create());
      const unreachable = signerOf(trial, await trial.createUnreachable());
      const signature = await signatureOf(trial, signer, ENTRY);
      expectThat(
        verdict(unreachable, ENTRY, signature),
        'with a service that cannot be reached, a good signature does not verify',
      );
    },
  },
];

function signerOf({ subject }: KeyWrapperTrial, keyWrapper: KeyWrapper): Signer {
  const { supports } = keyWrapper;
  if (keyWrapper.sign !== undefined && keyWrapper.verify !== undefined) return keyWrapper as Signer;
  if (supports.authenticated && keyWrapper.sign === undefined) throw new NotApplicable('its unwraps prove who wrapped');
  if (!subject.supports.signatures) throw new NotApplicable('supports.signatures is false');
  throw new Finding(`supports.authenticated is ${supports.authenticated}, and there is no sign with a verify`);
}

async function signatureOf(trial: KeyWrapperTrial, signer: Signer, entry: Uint8Array): Promise<Uint8Array> {
  const signature = await trial.answer(() => signer.sign(Uint8Array.from(entry)), 'sign');
  expectThat(types.isUint8Array(signature) && signature.length > 0, `sign gave ${kindOf(signature)}, not bytes`);
  return signature;
}

/** What `verify` says. @throws {Finding} when it is not a plain true or false. */
function verdict(signer: Signer, entry: Uint8Array, signature: Uint8Array): boolean {
  let said: unknown;
  try {
    said = signer.verify(entry, signature);
  } catch (error) {
    throw new Finding(`verify threw ${describeError(error)}`);
  }
  if (types.isPromise(said)) said.catch(() => undefined);
  expectThat(typeof said === 'boolean', `verify returned ${kindOf(said)}, not true or false`);
  return said;
}

function altered(bytes: Uint8Array): readonly (readonly [Uint8Array, string])[] {
  const flipped = (at: number): Uint8Array => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
  return [
    [flipped(0), 'with its first byte changed'],
    [flipped(bytes.length >> 1), 'with a byte in the middle changed'],
    [flipped(bytes.length - 1), 'with its last byte changed'],
    [bytes.slice(0, -1), 'without its last byte'],
    [Uint8Array.of(...bytes, 0), 'with a byte more'],
  ];
}
