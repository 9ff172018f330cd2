import type { TokenFacts } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { isInvalidToken } from '../foreign-error.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt } from '../ring/open.ts';
import { UsageError } from '../usage-error.ts';
import { withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Shows which key a token names, and the state of that key. Unseals nothing and
authenticates nothing: a forged token can name any key. Pass the token on
standard input: an argument stays in the history of the shell.

Example:
  $ npx sealring inspect < token.txt
`;

/** A limit above the longest token that a codec can accept. */
const MAX_CHARACTERS = 16 * 1024 * 1024 + 1;

export function addInspectCommand(program: Command): void {
  addCommonOptions(
    program
      .command('inspect')
      .summary('show the key of a token')
      .description('Shows the format of a token, its key and the state of the key, but never the content of the token.')
      .argument('[token]', 'the token; if omitted or -, it is read from standard input'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (given: string | undefined, { config: file, json = false }: CommonOptions) => {
      const isPiped = given === undefined || given === '-';
      if (!isPiped) {
        process.stderr.write(
          'note: the token is now in the history of your shell. Prefer: sealring inspect < token.txt\n',
        );
      }
      const token = isPiped ? await standardInput() : given;
      await withRing(file, 'reader', async (codec) => {
        const facts = await attempt('inspecting', async () => inspected(() => codec.inspect(token)));
        const key = facts.keyId === '' ? undefined : keyName(facts.keyId);
        if (json) printJson({ key, ...facts });
        else process.stdout.write(`${linesOf(facts).join('\n')}\n`);
      });
    });
}

function linesOf({ format, keyId, state, stale }: TokenFacts): readonly string[] {
  return [
    `format: ${format}`,
    `key:    ${keyId === '' ? 'not in the ring' : keyName(keyId)}`,
    `state:  ${state}${stale ? ' (stale: valid, but its key no longer seals)' : ''}`,
  ];
}

function inspected(read: () => TokenFacts): TokenFacts {
  try {
    return read();
  } catch (error) {
    // The message does not repeat the input, because the input can be another secret that was pasted by mistake.
    if (isInvalidToken(error)) {
      throw new Failure('not-a-token', 'the input is not a token: it matches none of the formats that a ring uses');
    }
    throw error;
  }
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('pass the token on standard input: sealring inspect < token.txt');
  process.stdin.setEncoding('utf8');
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > MAX_CHARACTERS) throw new UsageError('standard input is longer than any token');
  }
  const token = text.trim();
  if (token === '') throw new UsageError('standard input is empty');
  return token;
}
