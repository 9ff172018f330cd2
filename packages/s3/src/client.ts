/** One call in the SDK's form: `GetObjectCommand` or `PutObjectCommand`. */
export interface S3RingCommand {
  readonly input: object;
}

/**
 * The part of `S3Client` (`@aws-sdk/client-s3`, a peer dependency) that the store uses; a fake also works.
 *
 * Set `maxAttempts: 1` on your own client: a write that the SDK retries after it succeeded is refused as a
 * conflict with itself, and the SDK's retries outlast the deadline.
 */
export interface S3RingClient {
  /** Resolves to the service's answer. The caller checks its contents, hence `unknown`. */
  send(command: S3RingCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  /** Closes sockets. Called only on a client that the store created. */
  destroy?(): void;
}
