import type { Parser } from './parser.ts';
import { boundaryParsers } from './parsers/boundary.ts';
import { programParsers } from './parsers/programs.ts';
import { ringParsers } from './parsers/ring.ts';
import { tokenParsers } from './parsers/tokens.ts';
import { wrapParsers } from './parsers/wraps.ts';

/** Every parser of untrusted bytes. */
export async function allParsers(): Promise<readonly Parser[]> {
  const groups = [tokenParsers, boundaryParsers, ringParsers, wrapParsers, programParsers];
  return (await Promise.all(groups.map((make) => make()))).flat();
}
