import type { KeyWrapperOperation } from '@sealring/core';
import { type Calls, keyWrapping, type ServiceFailure, serviceDate, vendorError } from '@sealring/core/adapter';
import type { AzureCallOptions } from './clients.ts';
import { classify, type SeenAnswer } from './error-table.ts';

export const PROVIDER = 'azure-key-vault';

/** Permissions as Azure roles name them; access policies say `wrapKey`, `unwrapKey`, `sign` and `get`. */
const PERMISSIONS: Readonly<Partial<Record<KeyWrapperOperation, string>>> = Object.freeze({
  wrap: 'keys/wrap/action and keys/read',
  unwrap: 'keys/unwrap/action',
  sign: 'keys/sign/action and keys/read',
});

/** The options that the caller passes to one call of the key wrapper. */
export interface CallerOptions {
  readonly signal: AbortSignal | undefined;
  readonly onServiceDate: ((date: Date) => void) | undefined;
}

/** The vault's answer. */
export interface VaultAnswer {
  /** The SDK's result, unchecked. */
  readonly answer: unknown;
  /** The key version in the vault's HTTP answer or, if the client does not show the answer, in the client's result. */
  readonly keyId: unknown;
}

/** Makes the calls of one key wrapper, with deadlines, bounded retries, and errors with fixed texts. */
export class VaultCalls {
  readonly #calls: Calls<ServiceFailure>;

  /** @param mayPass - Whether to retry after a transient failure. Default: always. */
  constructor(
    limits: { readonly timeoutMs: number; readonly maxAttempts: number },
    mayPass?: (failure: ServiceFailure) => boolean,
  ) {
    // Every rejection is classified in `call`, where the answer is known.
    this.#calls = keyWrapping.calls(limits, () => ({ kind: 'unavailable' }), mayPass);
  }

  /** @throws {KeyWrapperError} for every failure. */
  async call(
    operation: KeyWrapperOperation,
    { signal, onServiceDate }: CallerOptions,
    send: (options: AzureCallOptions) => Promise<unknown>,
  ): Promise<VaultAnswer> {
    const outcome = await this.#calls.run<VaultAnswer>(
      signal,
      async (abortSignal) => {
        const seen = new LastAnswer();
        try {
          const answer = await send({ abortSignal, onResponse: (response) => seen.note(response) });
          return { answer: { answer, keyId: seen.isKnown ? seen.kid : vendorError.property(answer, 'keyID') } };
        } catch (error) {
          return { failure: classify(error, operation, seen) };
        } finally {
          serviceDate.noteDateHeader(seen.date, onServiceDate);
        }
      },
      // The caller has given up on this late answer, so a key in it is overwritten here.
      (late) => keyWrapping.overwrite(vendorError.property(late.answer, 'result')),
    );
    if ('answer' in outcome) return outcome.answer;
    throw keyWrapping.errorOf(PROVIDER, operation, { ...outcome, permission: PERMISSIONS[operation] });
  }

  close(): void {
    this.#calls.close();
  }
}

/**
 * Facts about an HTTP answer that the SDK loses: it reports the key id that it was given as the one that was used, and
 * drops the status if the body is empty. Nothing else is kept, because the text of the answer can contain a data key.
 */
class LastAnswer implements SeenAnswer {
  isKnown = false;
  status: number | undefined;
  requestId: string | undefined;
  date: unknown;
  kid: unknown;

  note(response: unknown): void {
    const headers = vendorError.property(response, 'rawHeaders');
    const body = vendorError.property(response, 'parsedBody');
    this.isKnown = true;
    this.status = vendorError.statusOf(vendorError.property(response, 'status'));
    this.requestId = vendorError.requestIdOf(vendorError.property(headers, 'x-ms-request-id'));
    this.date = vendorError.property(headers, 'date');
    this.kid = vendorError.property(body, 'kid');
  }
}
