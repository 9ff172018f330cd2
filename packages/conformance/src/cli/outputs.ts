import { resolve } from 'node:path';
import { htmlReport } from '../reports/html.ts';
import type { RunRecord } from '../reports/record.ts';
import { visible } from '../reports/visible.ts';
import { prepareFile, writeWhole } from '../reports/write.ts';
import { UsageError } from './usage-error.ts';

/** Where a run is reported, beside the terminal. */
export interface Outputs {
  readonly report?: string;
  /** `true`: standard output. */
  readonly json?: string | true;
}

/** Before a run, so that nothing is lost after minutes of work. @throws {UsageError} for what cannot be written. */
export function checkOutputs(outputs: Outputs): void {
  const seen = new Map<string, string>();
  for (const [option, path] of filesOf(outputs)) {
    const file = resolve(path);
    const other = seen.get(file);
    if (other !== undefined) throw new UsageError(`${other} and ${option} name the same file "${path}"`);
    seen.set(file, option);
    try {
      prepareFile(path);
    } catch (error) {
      throw new UsageError(`${option} "${path}" cannot be written: ${reasonOf(error)}`);
    }
  }
}

/** Writes every report that was asked for, even if one of them fails. @throws {UsageError} for those that did. */
export function writeOutputs(outputs: Outputs, record: RunRecord): void {
  const render = { '--report': htmlReport, '--json': jsonReport } as const;
  const failed: string[] = [];
  for (const [option, path] of filesOf(outputs)) {
    const content = render[option](record);
    try {
      writeWhole(path, content);
    } catch (error) {
      failed.push(`${option} "${path}" could not be written: ${reasonOf(error)}`);
    }
  }
  if (outputs.json === true) process.stdout.write(jsonReport(record));
  if (failed.length > 0) throw new UsageError(failed.join('; '));
}

function filesOf({ report, json }: Outputs): readonly (readonly ['--report' | '--json', string])[] {
  const all = [
    ['--report', report],
    ['--json', json],
  ] as const;
  return all.flatMap(([option, path]) => (typeof path === 'string' ? [[option, path] as const] : []));
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

/** The report of a run as it is, two spaces deep; what is not seen is written as JSON writes it, `\u202e`. */
export function jsonReport({ report }: RunRecord): string {
  return `${visible(JSON.stringify(report, undefined, 2))}\n`;
}
