import { randomBytes } from 'node:crypto';
import {
  AlgorithmSuiteIdentifier,
  buildClient,
  CommitmentPolicy,
  getLocalCryptographicMaterialsCache,
  NodeCachingMaterialsManager,
  RawAesKeyringNode,
  RawAesWrappingSuiteIdentifier,
} from '@aws-crypto/client-node';
import { type Contender, isBytes } from './contender.ts';

const CONTEXT = { ring: 'refund-desk' };

/** The AWS Encryption SDK with its caching materials manager, so that not every message causes a call to the KMS. */
export function encryptionSdk(): Contender {
  const { encrypt, decrypt } = buildClient(CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT);
  const keyring = new RawAesKeyringNode({
    keyName: 'key',
    keyNamespace: 'bench',
    unencryptedMasterKey: randomBytes(32),
    wrappingSuite: RawAesWrappingSuiteIdentifier.AES256_GCM_IV12_TAG16_NO_PADDING,
  });
  const manager = new NodeCachingMaterialsManager({
    backingMaterials: keyring,
    cache: getLocalCryptographicMaterialsCache(100),
    maxAge: 3_600_000,
    maxMessagesEncrypted: 2 ** 32,
  });
  // The suite has no signature, which the SDK adds by default: a state does not need one, and Sealring's tokens have
  // none either.
  const suiteId = AlgorithmSuiteIdentifier.ALG_AES256_GCM_IV12_TAG16_HKDF_SHA512_COMMIT_KEY;
  return {
    note: 'caching materials manager, raw AES keyring, no signatures',
    seal: async (payload) =>
      (await encrypt(manager, payload, { encryptionContext: CONTEXT, suiteId, plaintextLength: payload.length }))
        .result,
    unseal: async (sealed) => (await decrypt(manager, sealed as Buffer)).plaintext,
    lengthOf: (sealed) => Math.ceil(((sealed as Buffer).length * 4) / 3),
    isPayload: isBytes,
  };
}
