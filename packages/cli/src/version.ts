import { readFileSync } from 'node:fs';

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);

/** The version of this command line. */
export const cliVersion: string = manifest.version;
