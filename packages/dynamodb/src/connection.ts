import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { RingStoreCallOptions } from '@sealring/core';
import { type Calls, noteDateOf, type Outcome, storeCalls } from '@sealring/core/adapter';
import type { DynamodbStoreClient, DynamodbStoreCommand } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

/**
 * The SDK takes any empty 200, a proxy's too, for the answer that there is no item, or that one was written. What a
 * call consumed only DynamoDB can tell, and it does where it is asked to.
 */
export const PROOF: { readonly ReturnConsumedCapacity: 'TOTAL' } = Object.freeze({ ReturnConsumedCapacity: 'TOTAL' });

const FOREIGN: Failure = Object.freeze({ kind: 'unavailable', detail: 'the answer was not one of DynamoDB' });

/** What the stores use to reach the table: the client they were given, or one of their own. */
export class Connection {
  readonly #client: DynamodbStoreClient;
  readonly #isOwn: boolean;
  readonly #calls: Calls<Failure>;

  /** Opens nothing yet. */
  constructor({ client, region, timeoutMs }: Settings) {
    this.#client = client ?? new DynamoDBClient({ maxAttempts: 1, ...(region !== undefined && { region }) });
    this.#isOwn = client === undefined;
    this.#calls = storeCalls(timeoutMs, classify);
  }

  /** Sends one command that asks for {@link PROOF}. Never rejects. */
  send(
    command: DynamodbStoreCommand,
    { signal, onServiceDate }: RingStoreCallOptions = {},
  ): Promise<Outcome<object, Failure>> {
    noteDateOf(command, onServiceDate);
    return this.#calls.run(signal, async (abortSignal) => {
      const answer = await this.#client.send(command, { abortSignal });
      return isProved(answer) ? { answer } : { failure: FOREIGN };
    });
  }

  /** Ends the calls under way, and closes a client of its own; later calls are `unavailable`. */
  close(): void {
    this.#calls.close();
    if (this.#isOwn) this.#client.destroy?.();
  }
}

function isProved(answer: unknown): answer is object {
  if (typeof answer !== 'object' || answer === null || !('ConsumedCapacity' in answer)) return false;
  return typeof answer.ConsumedCapacity === 'object' && answer.ConsumedCapacity !== null;
}
