import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { RingStoreCallOptions } from '@sealring/core';
import { type Calls, type Outcome, ringStorage, serviceDate, vendorError } from '@sealring/core/adapter';
import type { DynamodbStoreClient, DynamodbStoreCommand } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

/**
 * The SDK takes any empty answer with status 200, even a proxy's, to mean that no item exists, or that one was written.
 * Only DynamoDB can report the capacity that a call consumed, so every command requests that report.
 */
export const CAPACITY: { readonly ReturnConsumedCapacity: 'TOTAL' } = Object.freeze({
  ReturnConsumedCapacity: 'TOTAL',
});

const FOREIGN: Failure = Object.freeze({ kind: 'unavailable', detail: 'the answer did not come from DynamoDB' });

/** The stores' connection to the table: the caller's client, or one that belongs to the connection. */
export class Connection {
  readonly #client: DynamodbStoreClient;
  readonly #isOwn: boolean;
  readonly #calls: Calls<Failure>;

  /** Connects at the first call. */
  constructor({ client, region, timeoutMs }: Settings) {
    this.#client = client ?? new DynamoDBClient({ maxAttempts: 1, ...region });
    this.#isOwn = client === undefined;
    this.#calls = ringStorage.calls(timeoutMs, classify);
  }

  /** Sends one command that requests {@link CAPACITY}. Never rejects. */
  send(
    command: DynamodbStoreCommand,
    { signal, onServiceDate }: RingStoreCallOptions = {},
  ): Promise<Outcome<unknown, Failure>> {
    serviceDate.noteDateOf(command, onServiceDate);
    return this.#calls.run(signal, async (abortSignal) => {
      const answer = await this.#client.send(command, { abortSignal });
      return vendorError.property(answer, 'ConsumedCapacity') instanceof Object ? { answer } : { failure: FOREIGN };
    });
  }

  /** Ends calls in progress, and closes its own client; later calls are `unavailable`. */
  close(): void {
    this.#calls.close();
    if (this.#isOwn) this.#client.destroy?.();
  }
}
