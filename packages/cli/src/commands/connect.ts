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
