import { createKmsCodec, type KmsCodec, type KmsCodecOptions, type RingStore } from '@sealring/core';
import { Failure } from '../failure.ts';
import { failureCodeOf, lineOf, rejectedOptionIn, sectionOn } from '../foreign-error.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { withProgress } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';
import { policyOf } from './policy.ts';

/**
 * Starts a codec on the ring of a configuration.
 *
 * @throws {Failure} with the answer of the store or the KMS. @throws {UsageError} for options that core rejects.
 */
export async function open(
  config: SealringConfig,
  more: Pick<KmsCodecOptions, 'role' | 'create' | 'signal'>,
): Promise<KmsCodec> {
  return openWith('reading the ring and unwrapping its keys', { ...codecOptionsOf(config), ...more });
}

/**
 * Starts the codec of a server, which may wait for another process to create the ring.
 *
 * @throws {Failure | UsageError} as {@link open}. @throws the signal's reason when the signal is aborted.
 */
export async function openForServer(config: SealringConfig, signal: AbortSignal): Promise<KmsCodec> {
  const options = codecOptionsOf(config);
  const rejection = await rejectionOfOptions(options);
  if (rejection !== undefined) throw new UsageError(rejection);
  try {
    return await attempt('starting the codec', () => createKmsCodec({ ...options, signal }));
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** The longest startup of a codec, in seconds. A server can wait longer; a command must answer soon. */
const MAX_START_SECONDS = 30;

/** Starts a codec with any options. `what` names the operation, for progress and for errors. */
export async function openWith(what: string, options: KmsCodecOptions): Promise<KmsCodec> {
  const rejection = await rejectionOfOptions(options);
  if (rejection !== undefined) throw new UsageError(rejection);
  return attempt(what, async () => {
    const absent = new AbortController();
    // Otherwise, the codec would wait until another process has created the ring.
    const ring =
      options.create === 'never'
        ? noting(options.ring, () => absent.abort(new Failure('ring-absent', ABSENT)))
        : options.ring;
    const { signal = absent.signal } = options;
    return createKmsCodec({
      ...options,
      ring,
      policy: withShortStart(options),
      signal: AbortSignal.any([signal, absent.signal]),
    });
  });
}

function withShortStart({ policy, ring }: KmsCodecOptions): NonNullable<KmsCodecOptions['policy']> {
  const { startTimeoutSeconds } = policyOf({ ring, ...(policy !== undefined && { policy }) });
  return { ...policy, startTimeoutSeconds: Math.min(MAX_START_SECONDS, startTimeoutSeconds) };
}

/** The message with which core rejects options; undefined if it accepts them. Core checks them before any call. */
export async function rejectionOfOptions(options: KmsCodecOptions): Promise<string | undefined> {
  const notNow = new Error('only the options are checked');
  try {
    await createKmsCodec({ ...options, signal: AbortSignal.abort(notNow) });
  } catch (error) {
    if (error === notNow) return undefined;
    return rejectedOptionIn(error) ?? lineOf(error);
  }
  throw new Error('createKmsCodec ignored its signal');
}

/** Runs an operation with progress, and turns an error of core into a failure with one line. */
export async function attempt<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withProgress(what, run);
  } catch (error) {
    if (error instanceof Failure || error instanceof UsageError) throw error;
    const section = sectionOn(error);
    const more = section === undefined ? '' : `, and see ${section}`;
    throw new Failure(failureCodeOf(error), `${what}: ${lineOf(error)}. Run "sealring doctor"${more}`, section);
  }
}

/** The same store; calls `onAbsent` when there is no ring in it. */
function noting(store: RingStore, onAbsent: () => void): RingStore {
  const { kind, location } = store;
  return {
    kind,
    ...(location !== undefined && { location }),
    async read(options) {
      const stored = await store.read(options);
      if (stored === undefined) onAbsent();
      return stored;
    },
    write: (document, options) => store.write(document, options),
    ...(store.watch !== undefined && { watch: store.watch.bind(store) }),
    ...(store.close !== undefined && { close: store.close.bind(store) }),
  };
}

/** Running servers write a lost ring again; a second ring would compete with it. */
const ABSENT =
  'the store has no ring. If servers that had one are running, wait: a member writes it again within ' +
  'refreshEverySeconds. If there has never been a ring, create one with "sealring init"';
