import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
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

/** Writes a key that only this user can read, and a configuration for it. Overwrites nothing. @throws {UsageError} */
export function writeLocalSetup(): readonly string[] {
  const existing = [...CONFIG_FILES, ...Object.values(LOCAL_FILES)].find((file) => existsSync(file));
  if (existing !== undefined) throw new UsageError(`${existing} already exists: nothing was written`);
  // The flag wx does not follow a link that was created in the meantime.
  writeFileSync(LOCAL_FILES.key, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  writeFileSync(LOCAL_FILES.config, CONFIG, { flag: 'wx' });
  return [`wrote ${LOCAL_FILES.key} (mode 0600: a secret, for development only)`, `wrote ${LOCAL_FILES.config}`];
}
