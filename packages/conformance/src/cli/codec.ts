import type { Command } from 'commander';
import { addCheckOptions, type CheckOptions, wholeNumber } from './check-options.ts';
import { runCheck } from './run-check.ts';

const EXAMPLE = `
The target, in a file target.mjs:

  import { randomBytes } from 'node:crypto';
  import { AesGcmRequestStateCodec } from '@sealring/core';

  const [a, b] = [randomBytes(32), randomBytes(32)];
  const codec = (...keys) => ({ codec: new AesGcmRequestStateCodec(keys) });
  export default {
    name: 'my codec',
    create: () => codec(a),
    createPeer: () => codec(a),
    createStranger: () => codec(b),
    createRotated: () => codec(b, a),
  };

Example:
  $ npx sealring-conformance codec target.mjs --report report.html
`;

export function addCodecCommand(program: Command): void {
  const command = program
    .command('codec')
    .summary('try a requestState codec')
    .description('Checks a codec against the contract of requestState codecs.')
    .argument('[target]', 'module that exports a target: .js, .mjs, .ts, .mts')
    .option('--exec <command>', 'instead of a module: a program in any language that speaks JSON lines')
    .option('--no-confidentiality', 'with --exec: its tokens do not hide their payload')
    .option('--no-cross-instance', 'with --exec: no other process of the fleet unseals its tokens')
    .option('--no-rotation', 'with --exec: it does not know the role "rotated"')
    .option(
      '--max-payload-bytes <n>',
      'with --exec: longer payloads are refused',
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    );
  addCheckOptions(command)
    .addHelpText('after', EXAMPLE)
    .action(async (module: string | undefined, options: CheckOptions) => {
      process.exitCode = await runCheck('codec', module, options);
    });
}
