import { join } from 'node:path';
import { installedOnce } from './installed-once.ts';
import { MissingPrerequisite } from './python-venv.ts';

/**
 * Where promtool is. Taken out of Debian's package `prometheus`, which is not installed: its service would start, and the
 * tool needs nothing of it. Undefined, and told in one line, where that cannot be had; under `CI=true` that is a failure.
 */
export async function promtool(): Promise<string | undefined> {
  try {
    const folder = await installedOnce({
      name: 'promtool',
      command: 'sh',
      args: () => ['-ec', UNPACK],
      missing: 'promtool is missing: it is taken from the Debian package prometheus',
    });
    return join(folder, 'usr/bin/promtool');
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
}

const UNPACK = `apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; }
dpkg-deb -x prometheus_*.deb .
rm -rf prometheus_*.deb etc lib var usr/share usr/lib usr/bin/prometheus`;
