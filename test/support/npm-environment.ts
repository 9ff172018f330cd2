import { readFileSync } from 'node:fs';

/**
 * This process's environment for `npm` in another project. `npm run` passes its settings down, with this repository's
 * `.npmrc`, as `npm_config_…`; a reader's project has none of those.
 */
export function npmEnvironment(): NodeJS.ProcessEnv {
  const settings = readFileSync(new URL('../../.npmrc', import.meta.url), 'utf8').split('\n');
  const names = settings.map((line) => `npm_config_${(line.split('=')[0] ?? '').trim().replaceAll('-', '_')}`);
  const ours = new Set([...names, 'npm_config_loglevel', 'NODE_OPTIONS', 'NODE_PATH']);
  const environment = Object.entries(process.env).filter(([name]) => !ours.has(name));
  return { ...Object.fromEntries(environment), npm_config_prefer_offline: 'true' };
}
