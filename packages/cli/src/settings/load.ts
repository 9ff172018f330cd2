import { withProgress } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';
import { CONFIG_FILES, findConfigFile, loadConfigFile } from './config-file.ts';
import { isInEnvironment, loadEnvironment } from './environment.ts';
import type { Settings } from './settings.ts';

/**
 * Loads the configuration: the file of `--config`, else a configuration file in the working directory, else the
 * environment. `option` is the option that names the file.
 *
 * @throws {UsageError} for a missing or invalid configuration. @throws {ConfigFailure} if the KMS or the store fails.
 */
export function loadSettings(file: string | undefined, option = '--config'): Promise<Settings> {
  return withProgress('loading the configuration', async () => {
    if (file !== undefined) return loadConfigFile(file, `${option} "${file}"`);
    const found = findConfigFile();
    if (found !== undefined) return loadConfigFile(found, found);
    if (isInEnvironment(process.env)) return loadEnvironment(process.env);
    throw new UsageError(
      `there is no configuration. Write ${CONFIG_FILES.slice(0, 2).join(' or ')}, name a file with --config, set the ` +
        'SEALRING_* variables, or try "sealring init --local"',
    );
  });
}
