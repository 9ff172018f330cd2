import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { writeNewFile } from '../migration/new-file.ts';
import { CONFIG_FILES } from '../settings/config-file.ts';
import { UsageError } from '../usage-error.ts';

/** The files that `init --local` writes to the working directory. */
export const LOCAL_FILES = {
  key: 'sealring.local.key',
  config: 'sealring.config.mjs',
  ring: 'sealring.local.ring',
} as const;

const CONFIG = `import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fileRing, localKeyWrapper } from '@sealring/core';

// For development only: anyone who can read ${LOCAL_FILES.key} can read every token of this ring. Keep the key and the
// ring out of version control.
const at = (name) => new URL(name, import.meta.url);

export default {
  ringName: 'local',
  ring: fileRing(fileURLToPath(at('${LOCAL_FILES.ring}'))),
  keyWrapper: localKeyWrapper({ masterKey: readFileSync(at('${LOCAL_FILES.key}'), 'utf8').trim() }),
};
`;

/**
 * Writes a key that only this user can read, and a configuration for it. Overwrites nothing, and leaves nothing behind if it
 * fails. @throws {UsageError | Failure}
 */
export function writeLocalSetup(): readonly string[] {
  const existing = [...CONFIG_FILES, ...Object.values(LOCAL_FILES)].find((file) => existsSync(file));
  if (existing !== undefined) throw new UsageError(`${existing} already exists: nothing was written`);
  writeNewFile(LOCAL_FILES.key, `${randomBytes(32).toString('base64url')}\n`);
  try {
    writeNewFile(LOCAL_FILES.config, CONFIG, 0o666);
  } catch (error) {
    rmSync(LOCAL_FILES.key);
    throw error;
  }
  return [`wrote ${LOCAL_FILES.key} (mode 0600: a secret, for development only)`, `wrote ${LOCAL_FILES.config}`];
}
