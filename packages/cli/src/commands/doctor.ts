import { type Command, Option } from 'commander';
import { configFailureReport } from '../doctor/config-failure-report.ts';
import { runDoctor } from '../doctor/doctor.ts';
import type { DoctorReport, Finding, Severity } from '../doctor/finding.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { ConfigFailure } from '../settings/config-failure.ts';
import { wrapped } from '../terminal/page.ts';
import { type Paint, paintFor } from '../terminal/paint.ts';
import { withProgress } from '../terminal/progress.ts';
import { visibleLine } from '../terminal/visible.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Checks the options and the policy, the environment, the KMS key, the ring store,
the ring and the clock. Writes nothing to the ring.

Exit codes: 0 no error; 1 an error, or with --strict a warning; 2 wrong command
line or configuration.

Example, with the variables of the Terraform modules:
  $ npm install @sealring/aws-kms @sealring/s3
  $ export SEALRING_AWS_KMS_KEY_ID=alias/payments AWS_REGION=eu-west-1
  $ export SEALRING_RING_NAME=payments
  $ export SEALRING_RING_STORE=s3://payments-sealring/payments.ring
  $ npx sealring doctor
`;

interface DoctorCommandOptions extends CommonOptions {
  readonly role?: 'member' | 'reader';
  readonly strict?: boolean;
}

/** A report for printing: the name of the ring is unknown if the configuration could not be loaded. */
type PrintedReport = Omit<DoctorReport, 'ring'> & { readonly ring?: string; readonly origin: string };

const LABELS: Readonly<Record<Severity, string>> = {
  ok: 'ok',
  info: 'unchecked',
  warning: 'warning',
  error: 'ERROR',
};
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
      .summary('find out what is wrong and how to fix it')
      .description('Checks everything that a server needs in order to use the ring.')
      .addOption(
        new Option(
          '--role <role>',
          'check the permissions of this role (default: the role in the configuration)',
        ).choices(['member', 'reader']),
      )
      .option('--strict', 'also exit with code 1 for warnings'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, role, strict = false }: DoctorCommandOptions) => {
      const report = await examined(file, role);
      if (json) printJson(report);
      else process.stdout.write(textOf(report, paintFor(process.stdout, color)));
      const isFine = report.healthy && !(strict && report.findings.some(({ severity }) => severity === 'warning'));
      process.exitCode = isFine ? EXIT_CODE.done : EXIT_CODE.failed;
    });
}

/** Runs the doctor. A failure of the KMS or the store while the configuration is loaded becomes a finding. */
async function examined(file: string | undefined, role: DoctorCommandOptions['role']): Promise<PrintedReport> {
  try {
    return await withSettings(file, async ({ config, origin }) => {
      const asked = role === undefined ? config : { ...config, role };
      return { origin, ...(await withProgress('checking', () => runDoctor(asked))) };
    });
  } catch (error) {
    if (error instanceof ConfigFailure) return { origin: error.origin, ...configFailureReport(error, role) };
    throw error;
  }
}

function textOf({ ring, role, origin, findings, wrote }: PrintedReport, paint: Paint): string {
  const longest = Math.max(...Object.values(LABELS).map((label) => label.length));
  const linesOf = ({ severity, id, what, remedy }: Finding): readonly string[] => [
    wrapped(`${paint(COLOURS[severity], LABELS[severity].padEnd(longest))}  `, `${visibleLine(what)} [${id}]`),
    ...(remedy === undefined ? [] : [wrapped(`${' '.repeat(longest)}  → `, visibleLine(remedy))]),
  ];
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length;
  const [errors, warnings] = [count('error'), count('warning')];
  const verdict = `${errors} error${errors === 1 ? '' : 's'}, ${warnings} warning${warnings === 1 ? '' : 's'}`;
  return [
    `${ring === undefined ? 'unknown ring' : `ring "${visibleLine(ring)}"`} as a ${role}, configured by ${origin}`,
    '',
    ...findings.flatMap(linesOf),
    '',
    ...(wrote.length === 0 ? ['Nothing was written.'] : [`Written: ${wrote.join('; ')}.`]),
    paint(['bold', errors > 0 ? 'red' : 'green'], verdict),
    '',
  ].join('\n');
}
