/** A command of the SDK: `GenerateDataKeyCommand`, `EncryptCommand` or `DecryptCommand`. */
export interface AwsKmsCommand {
  readonly input: object;
}

/**
 * The part of `KMSClient` (`@aws-sdk/client-kms`, a peer dependency) that the wrapper uses; a fake also works. At run
 * time, the client must accept this package's commands: create it with the same copy of the SDK.
 *
 * On your own client, set `maxAttempts: 1`. Otherwise the SDK's retries multiply the wrapper's retries, outlast the
 * wrapper's deadline and hide the code of the first refusal.
 */
export interface AwsKmsClient {
  /** Resolves to the service's answer. The caller checks its contents, hence `unknown`. */
  send(command: AwsKmsCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  /** Closes sockets. Called only on a client that the wrapper created. */
  destroy?(): void;
}
