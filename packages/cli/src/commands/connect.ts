import { createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { Failure } from '../failure.ts';
import { isOurRefusal, lineOf, sectionOn, storeFailureOf } from '../foreign-error.ts';
import { withProgress } from '../progress.ts';
import { loadSettings } from '../settings/load.ts';
import { codecOptionsOf, type SealringConfig, type Settings } from '../settings/settings.ts';
import { UsageError } from '../usage-error.ts';

/** Loads the settings, works with them, and lets go of them. */
export async function withSettings<T>(file: string | undefined, work: (settings: Settings) => Promise<T>): Promise<T> {
  const settings = await loadSettings(file);
  try {
    return await work(settings);
  } finally {
    await settings.close();
  }
}

/** Opens the ring that is there, works with it, and closes it. @throws {Failure | UsageError} */
export async function withRing<T>(
  file: string | undefined,
  role: 'member' | 'reader',
  work: (codec: KmsCodec, settings: Settings) => Promise<T>,
): Promise<T> {
  return withSettings(file, async (settings) => {
    const codec = await open(settings.config, { role, create: 'never' });
    try {
      return await work(codec, settings);
    } finally {
      await codec.close();
    }
  });
}

/** @throws {Failure} what the store or the KMS said. @throws {UsageError} for options that core refuses. */
export async function open(config: SealringConfig, more: Pick<KmsCodecOptions, 'role' | 'create'>): Promise<KmsCodec> {
  return attempt('opening the ring', () => createKmsCodec({ ...codecOptionsOf(config), ...more }));
}

/** Tells about what takes long, and turns what core throws into one line. */
export async function attempt<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withProgress(what, run);
  } catch (error) {
    if (error instanceof Failure || error instanceof UsageError) throw error;
    if (isOurRefusal(error)) throw new UsageError(lineOf(error));
    const isAbsent = storeFailureOf(error)?.detail.startsWith('there is no ring') === true;
    if (isAbsent) throw new Failure(ABSENT);
    const section = sectionOn(error);
    const more = `"sealring doctor" says more${section === undefined ? '' : `, and ${section}`}`;
    throw new Failure(`${what}: ${lineOf(error)}; ${more}`);
  }
}

/** Servers that run heal an empty store by themselves; a ring founded over them would be a second one. */
const ABSENT =
  'there is no ring in the store. If servers run that had one, leave it to them: a member writes it again at its next ' +
  'read, within refreshEverySeconds. Only if there never was one: "sealring init"';
