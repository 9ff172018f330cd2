import { Failure } from '../failure.ts';
import { failureCodeOf, type KmsFailure, kmsFailuresOf, lineOf } from '../foreign-error.ts';

/** The KMS or the store failed while the configuration was loaded, for example when it fetched a public key. */
export class ConfigFailure extends Failure {
  /** The failures of the KMS; empty if it was the store that failed. */
  readonly kms: readonly KmsFailure[];
  /** The source of the configuration, for messages. */
  readonly origin: string;
  /** The requested KMS key, if it is known. */
  readonly keyId: string | undefined;

  constructor(origin: string, error: unknown, keyId?: string) {
    super(failureCodeOf(error), `loading ${origin}: ${lineOf(error)}. Run "sealring doctor"`);
    this.kms = kmsFailuresOf(error);
    this.origin = origin;
    this.keyId = keyId;
  }
}
