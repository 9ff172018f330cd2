import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { MUTANTS } from './mutants.ts';

/*
 * This module is loaded before a trial: the program then runs on a copy of the sources of core, with one guard
 * removed.
 */
const SOURCE = new URL('../../packages/core/src/', import.meta.url).href;
const { SEALRING_MUTANT, SEALRING_CORE_COPY } = process.env;
const COPY = SEALRING_CORE_COPY === undefined ? SOURCE : pathToFileURL(`${SEALRING_CORE_COPY}/`).href;
const mutant = MUTANTS.find(({ name }) => name === SEALRING_MUTANT);

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier === '@sealring/core' ? `${SOURCE}index.ts` : specifier, context);
    return resolved.url.startsWith(SOURCE) ? { ...resolved, url: COPY + resolved.url.slice(SOURCE.length) } : resolved;
  },
  load(url, context, nextLoad) {
    const edits = mutant?.edits.filter(({ file }) => url === COPY + file) ?? [];
    if (edits.length === 0) return nextLoad(url, context);
    let source = readFileSync(new URL(url), 'utf8');
    for (const { from, to } of edits) {
      if (source.split(from).length !== 2) throw new Error(`${mutant?.name ?? ''}: not once in ${url}: ${from}`);
      source = source.replace(from, () => to);
    }
    return { format: 'module-typescript', source, shortCircuit: true };
  },
});
