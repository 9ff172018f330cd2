import { appendFileSync } from 'node:fs';

/*
 * Loaded before the source of a command that a test runs as a process. The switch of the changes reads the active one
 * from the environment, which the process inherits from its test; at its end, it adds those that it met to a file.
 */
const { MUTATION_MET = '' } = process.env;

/** A change that is met more often is an endless loop. */
const MOST_HITS = 1_000_000;

interface Switches {
  hitCount: number;
  readonly hitLimit: number;
  readonly mutantCoverage?: { readonly static: object };
}

const switches: Switches = { hitCount: 0, hitLimit: MOST_HITS };
Reflect.set(globalThis, '__stryker__', switches);
if (MUTATION_MET !== '')
  process.on('exit', () => {
    const met = Object.keys(switches.mutantCoverage?.static ?? {});
    appendFileSync(MUTATION_MET, `${met.join('\n')}\n`);
  });
