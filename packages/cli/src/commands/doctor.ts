import type { Command } from 'commander';
import { Option } from 'commander';
import { runDoctor } from '../doctor/doctor.ts';
import type { DoctorReport, Finding, Severity } from '../doctor/finding.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { type Paint, paintFor } from '../terminal/paint.ts';
import { withProgress } from '../terminal/progress.ts';
import { visibleLine } from '../terminal/visible.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Looks at options and policy, the process's environment, the KMS key, the ring store, the ring and the clock. Writes nothing
to the ring. Exit code: 0 nothing is an error, 1 something is, 2 the command line or the configuration is wrong.

Example, with the environment that the Terraform modules give to containers:
  $ npm install @sealring/aws-kms @sealring/s3
  $ export SEALRING_AWS_KMS_KEY_ID=arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
  $ export SEALRING_RING_NAME=payments SEALRING_RING_STORE=s3 SEALRING_S3_BUCKET=payments-sealring SEALRING_S3_KEY=payments.ring
  $ npx sealring doctor
`;

interface DoctorCommandOptions extends CommonOptions {
  readonly role?: 'member' | 'reader';
}

const WORDS: Readonly<Record<Severity, string>> = { ok: 'ok', info: 'not seen', warning: 'warning', error: 'ERROR' };
const COLOURS: Readonly<Record<Severity, Parameters<Paint>[0]>> = {
  ok: 'green',
  info: 'dim',
  warning: 'yellow',
  error: 'red',
};

export function addDoctorCommand(program: Command): void {
  addCommonOptions(
    program
      .command('doctor')
      .summary('find out what is wrong, and what to do about it')
      .description('Checks everything that a server needs to work on the ring.')
      .addOption(
        new Option(
          '--role <role>',
          'the rights to look for (default: those of the configuration, else member)',
        ).choices(['member', 'reader']),
      ),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, role }: DoctorCommandOptions) => {
      await withSettings(file, async ({ config, origin }) => {
        const asked = role === undefined ? config : { ...config, role };
        const report = await withProgress('examining', () => runDoctor(asked));
        if (json) printJson({ origin, ...report });
        else process.stdout.write(textOf(report, origin, paintFor(process.stdout, color)));
        process.exitCode = report.healthy ? EXIT_CODE.done : EXIT_CODE.failed;
      });
    });
}

function textOf({ ring, role, findings, wrote }: DoctorReport, origin: string, paint: Paint): string {
  const longest = Math.max(...Object.values(WORDS).map((word) => word.length));
  const lineOf = ({ severity, id, what, remedy }: Finding): readonly string[] => [
    `${paint(COLOURS[severity], WORDS[severity].padEnd(longest))}  ${visibleLine(what)} [${id}]`,
    ...(remedy === undefined ? [] : [`${' '.repeat(longest)}  → ${visibleLine(remedy)}`]),
  ];
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length;
  const [errors, warnings] = [count('error'), count('warning')];
  const verdict = `${errors} error${errors === 1 ? '' : 's'}, ${warnings} warning${warnings === 1 ? '' : 's'}`;
  return [
    `ring "${visibleLine(ring)}" as a ${role}, by ${origin}`,
    '',
    ...findings.flatMap(lineOf),
    '',
    ...(wrote.length === 0 ? ['Nothing was written.'] : [`Written: ${wrote.join('; ')}.`]),
    paint(['bold', errors > 0 ? 'red' : 'green'], verdict),
    '',
  ].join('\n');
}
