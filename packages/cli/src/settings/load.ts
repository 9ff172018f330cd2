import { UsageError } from '../usage-error.ts';
import { CONFIG_FILES, findConfigFile, loadConfigFile } from './config-file.ts';
import { isInEnvironment, loadEnvironment } from './environment.ts';
import type { Settings } from './settings.ts';

/**
 * Finds what to work on: the file of `--config`, else a configuration file of the working directory, else the
 * environment.
 *
 * @throws {UsageError} when there is none, or it is wrong.
 */
export async function loadSettings(file: string | undefined): Promise<Settings> {
  if (file !== undefined) return loadConfigFile(file, `--config "${file}"`);
  const found = findConfigFile();
  if (found !== undefined) return loadConfigFile(found, found);
  if (isInEnvironment(process.env)) return loadEnvironment(process.env);
  throw new UsageError(
    `nothing says which ring is meant: write ${CONFIG_FILES.slice(0, -1).join(' or ')}, name one with --config, set the ` +
      'SEALRING_* variables of the Terraform modules, or try "sealring init --local"',
  );
}
