import { createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { Failure } from '../failure.ts';
import { lineOf, refusedOptionIn, sectionOn, storeFailureOf } from '../foreign-error.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { withProgress } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';

/**
 * Opens the ring of a configuration.
 *
 * @throws {Failure} what the store or the KMS said. @throws {UsageError} for options that core refuses.
 */
export async function open(config: SealringConfig, more: Pick<KmsCodecOptions, 'role' | 'create'>): Promise<KmsCodec> {
  return openWith('opening the ring', { ...codecOptionsOf(config), ...more });
}

/** The same with any options. `what` says what for. */
export async function openWith(what: string, options: KmsCodecOptions): Promise<KmsCodec> {
  const refusal = await refusalOfOptions(options);
  if (refusal !== undefined) throw new UsageError(refusal);
  return attempt(what, async () => {
    try {
      return await createKmsCodec(options);
    } catch (error) {
      const mayBeAbsent = options.create === 'never' && storeFailureOf(error) !== undefined;
      if (mayBeAbsent && (await isAbsent(options.ring))) throw new Failure(ABSENT);
      throw error;
    }
  });
}

/** What core says of options that it refuses: it checks them before it does anything, and then finds it need not start. */
export async function refusalOfOptions(options: KmsCodecOptions): Promise<string | undefined> {
  const notNow = new Error('not now');
  try {
    await createKmsCodec({ ...options, signal: AbortSignal.abort(notNow) });
  } catch (error) {
    if (error === notNow) return undefined;
    return refusedOptionIn(error) ?? lineOf(error);
  }
  throw new Error('core started although it was told not to');
}

/** Tells about what takes long, and turns what core throws into one line. */
export async function attempt<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withProgress(what, run);
  } catch (error) {
    if (error instanceof Failure || error instanceof UsageError) throw error;
    const section = sectionOn(error);
    const more = `"sealring doctor" says more${section === undefined ? '' : `, and ${section}`}`;
    throw new Failure(`${what}: ${lineOf(error)}; ${more}`);
  }
}

/** Longest wait for the store, when the ring could not be opened and this may be why. */
const LOOK_MS = 5_000;

async function isAbsent(ring: KmsCodecOptions['ring']): Promise<boolean> {
  try {
    return (await ring.read({ signal: AbortSignal.timeout(LOOK_MS) })) === undefined;
  } catch {
    // A store that fails is told about already, by what could not be opened.
    return false;
  }
}

/** Servers that run heal an empty store by themselves; a ring founded over them would be a second one. */
const ABSENT =
  'there is no ring in the store. If servers run that had one, leave it to them: a member writes it again at its next ' +
  'read, within refreshEverySeconds. Only if there never was one: "sealring init"';
