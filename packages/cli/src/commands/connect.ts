import type { KmsCodec } from '@sealring/core';
import { open } from '../ring/open.ts';
import { loadSettings } from '../settings/load.ts';
import type { Settings } from '../settings/settings.ts';

/** Loads the configuration, passes it to `work`, and closes it. */
export async function withSettings<T>(file: string | undefined, work: (settings: Settings) => Promise<T>): Promise<T> {
  const settings = await loadSettings(file);
  try {
    return await work(settings);
  } finally {
    await settings.close();
  }
}

/**
 * As {@link withSettings}, but a signal ends the loading: a module can take any time. @returns undefined if it did. The
 * process must then end, because the module may still be loading.
 */
export async function withSettingsUntil<T>(
  stop: AbortSignal,
  file: string | undefined,
  work: (settings: Settings) => Promise<T>,
): Promise<T | undefined> {
  if (stop.aborted) return undefined;
  const stopped = new Promise<undefined>((resolve) => stop.addEventListener('abort', () => resolve(undefined)));
  const loading = loadSettings(file);
  // A rejection after the end is not reported.
  loading.catch(() => undefined);
  const settings = await Promise.race([loading, stopped]);
  if (settings === undefined) return undefined;
  try {
    return await work(settings);
  } finally {
    await settings.close();
  }
}

/** Starts a codec on an existing ring, passes it to `work`, and closes it. @throws {Failure | UsageError} */
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
