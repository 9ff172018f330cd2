/** One call in the SDK's form: `GetItemCommand` or `PutItemCommand`. */
export interface DynamodbStoreCommand {
  readonly input: object;
}

/**
 * The part of `DynamoDBClient` (`@aws-sdk/client-dynamodb`, a peer dependency) that the store uses; a fake also works.
 *
 * Set `maxAttempts: 1` on your own client: a write that the SDK retries after it succeeded is refused as a
 * conflict with itself, and the SDK's retries outlast the deadline.
 */
export interface DynamodbStoreClient {
  /** Resolves to the service's answer. The caller checks its contents, hence `unknown`. */
  send(command: DynamodbStoreCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  /** Closes sockets. Called only on a client that the store created. */
  destroy?(): void;
}
