import type { Requirement, SuiteName } from '../src/index.ts';
import type { Tried } from '../src/requirement.ts';

/** The page that says what every requirement of a suite is tried with. */
export function requirementsPage(
  suite: SuiteName,
  requirements: readonly (Requirement & { readonly tried: Tried })[],
): string {
  const sections = requirements.map(({ id, level, text, source, tried }) => {
    const { operations, bytes, lengths, order, latency } = tried;
    const cells = { Calls: operations, Bytes: bytes, Lengths: lengths, Order: order, Latency: latency };
    const lines = Object.entries(cells).map(([name, cell]) => `* ${name}: ${cell}.`);
    return [`## \`${id}\``, `${level}: ${text} (${source})`, lines.join('\n')].join('\n\n');
  });
  const written = `<!-- Written by \`vitest run --project conformance ${suite} -u\` from the requirements. -->`;
  return `${[`# What ${suite.replace('-', ' ')}s are tried with`, written, ...sections].join('\n\n')}\n`;
}
