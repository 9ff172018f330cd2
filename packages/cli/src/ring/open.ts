import { createKmsCodec, type KmsCodec, type KmsCodecOptions, type RingStore, type StoredRing } from '@sealring/core';
import { Failure } from '../failure.ts';
import { failureCodeOf, lineOf, rejectedOptionIn, sectionOn, storeFailureOf } from '../foreign-error.ts';
import { codecOptionsOf, nowOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { withProgress } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';
import { isEnded, readDocument } from './document.ts';
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
  return openWith(READING, { ...codecOptionsOf(config), ...more });
}

/**
 * Starts a member that creates a key at once if the ring has no live key. `mustExist`: not if the store has no ring.
 *
 * @throws {Failure | UsageError} as {@link open}.
 */
export async function openToCreate(
  config: SealringConfig,
  { mustExist }: { readonly mustExist: boolean },
): Promise<KmsCodec> {
  // The policy's wait is for servers, which start without an operator.
  const { createAfterSeconds: _, ...policy } = config.policy ?? {};
  return openWith(READING, { ...codecOptionsOf(config), policy, role: 'member', create: 'now' }, mustExist);
}

const READING = 'reading the ring and unwrapping its keys';

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
export async function openWith(
  what: string,
  options: KmsCodecOptions,
  mustExist: boolean = options.create === 'never',
): Promise<KmsCodec> {
  const rejection = await rejectionOfOptions(options);
  if (rejection !== undefined) throw new UsageError(rejection);
  return attempt(what, async () => {
    const absent = new AbortController();
    let document: string | undefined;
    const note = (stored: StoredRing | undefined): void => {
      document = stored?.document;
      // Otherwise, the codec would wait until another process has created the ring.
      if (stored === undefined) absent.abort(new Failure('ring-absent', ABSENT));
    };
    const { signal = absent.signal } = options;
    try {
      return await createKmsCodec({
        ...options,
        ring: mustExist ? noting(options.ring, note) : options.ring,
        policy: withShortStart(options),
        signal: AbortSignal.any([signal, absent.signal]),
      });
    } catch (error) {
      const hasEnded = storeFailureOf(error)?.kind === 'corrupt' && isEndedRing(document, options);
      throw hasEnded ? new Failure('no-sealing-key', ENDED) : error;
    }
  });
}

/** Whether a document is a ring of this name whose keys have all expired or are revoked. */
function isEndedRing(text: string | undefined, options: KmsCodecOptions): boolean {
  const document = text === undefined ? undefined : readDocument(text);
  return document?.ring === ringNameOf(options) && isEnded(document, nowOf(options));
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

/** The same store; calls `note` with the answer of every read. */
function noting(store: RingStore, note: (stored: StoredRing | undefined) => void): RingStore {
  const { kind, location } = store;
  return {
    kind,
    ...(location !== undefined && { location }),
    async read(options) {
      const stored = await store.read(options);
      note(stored);
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

const ENDED =
  'the ring has no live key: each has expired or was revoked. A running member publishes a new key within minutes. If none ' +
  'is running, publish one with "sealring rotate"';
