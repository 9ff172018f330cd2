/** One call as the SDK spells it: `GetObjectCommand` or `PutObjectCommand`. */
export interface S3RingCommand {
  readonly input: object;
}

/**
 * The part of `S3Client` (`@aws-sdk/client-s3`, a peer dependency) that is used; a fake fits too.
 *
 * Set `maxAttempts: 1` on a client of your own: a write that the SDK repeats after it was done is refused as a conflict
 * with itself, and the SDK's retries outlast the deadline.
 */
export interface S3RingClient {
  /** Resolves to the service's answer. What it holds is checked by the caller, hence `unknown`. */
  send(command: S3RingCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  /** Closes sockets. Called on a client that the store made itself, never on one it was given. */
  destroy?(): void;
}
