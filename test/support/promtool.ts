import { join } from 'node:path';
import { installedOnce } from './installed-once.ts';
import { MissingPrerequisite } from './python-venv.ts';

/** The programs of Prometheus. */
export interface PrometheusPrograms {
  readonly promtool: string;
  readonly server: string;
}

/**
 * Returns the path of the programs, which are unpacked from Debian's package `prometheus`; installing it would start
 * its service. Undefined, with one line of output, if the package is not available; under `CI=true` that is a failure.
 */
export async function prometheusPrograms(): Promise<PrometheusPrograms | undefined> {
  try {
    const folder = await installedOnce({
      name: 'prometheus',
      command: 'sh',
      args: () => ['-ec', UNPACK],
      missing: 'promtool is missing: it is taken from the Debian package prometheus',
    });
    return { promtool: join(folder, 'usr/bin/promtool'), server: join(folder, 'usr/bin/prometheus') };
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
}

const UNPACK = `apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; }
dpkg-deb -x prometheus_*.deb .
rm -rf prometheus_*.deb etc lib var usr/share usr/lib`;
