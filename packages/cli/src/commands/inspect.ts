import type { TokenFacts } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { attempt } from '../ring/open.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Says which key a token claims to be sealed by, and what the ring says of that key. Opens nothing and checks nothing: a
forged token says whatever it likes. Read the token from standard input: an argument stays in the shell's history.

Example:
  $ npx sealring inspect < token.txt
`;

/** Over the longest token that a codec can be told to open. */
const MOST_CHARACTERS = 16 * 1024 * 1024 + 1;

export function addInspectCommand(program: Command): void {
  addCommonOptions(
    program
      .command('inspect')
      .summary('what a token says of itself')
      .description('Shows format, key id and state of a token; never what is in it.')
      .argument('[token]', 'the token; without it, or with -, standard input'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (given: string | undefined, { config: file, json = false }: CommonOptions) => {
      const isPiped = given === undefined || given === '-';
      if (!isPiped) {
        process.stderr.write(
          'note: the token is in the history of your shell now; next time: sealring inspect < token.txt\n',
        );
      }
      const token = isPiped ? await standardInput() : given;
      await withRing(file, 'reader', async (codec) => {
        const facts = await attempt('inspecting', async () => inspected(() => codec.inspect(token)));
        if (json) printJson(facts);
        else process.stdout.write(`${linesOf(facts).join('\n')}\n`);
      });
    });
}

function linesOf({ format, keyId, state, stale }: TokenFacts): readonly string[] {
  return [
    `format: ${format}`,
    `key:    ${keyId === '' ? 'its fingerprint is that of no key of the ring' : visibleLine(keyId)}`,
    `state:  ${state}${stale ? ' (stale: it opens, and its key seals no more)' : ''}`,
  ];
}

function inspected(read: () => TokenFacts): TokenFacts {
  try {
    return read();
  } catch (error) {
    // Never the token itself: it may be a secret of another kind, pasted by mistake.
    if (error instanceof Error && error.name === 'InvalidRequestState') {
      throw new Failure('this is no token of a ring: neither of its formats');
    }
    throw error;
  }
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('pipe the token to standard input: sealring inspect < token.txt');
  process.stdin.setEncoding('utf8');
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > MOST_CHARACTERS) throw new UsageError('standard input is longer than any token');
  }
  const token = text.trim();
  if (token === '') throw new UsageError('standard input holds no token');
  return token;
}
