import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { MissingPrerequisite } from './python-venv.ts';
import { requireCommand } from './redis.ts';

const COMMAND = 'chromium-headless-shell';

/**
 * Starts Debian's headless Chromium, and installs the package where that is possible. Undefined, with one line of
 * output, if it is not available; under `CI=true` that is a failure.
 */
export async function startChromium(): Promise<Browser | undefined> {
  try {
    await requireCommand(COMMAND, COMMAND);
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const executablePath = folders.map((folder) => join(folder, COMMAND)).find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error(`${COMMAND} is not on the path`);
  return chromium.launch({ executablePath });
}
