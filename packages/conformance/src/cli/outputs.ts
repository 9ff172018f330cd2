import { resolve } from 'node:path';
import { htmlReport } from '../reports/html.ts';
import { jsonReport } from '../reports/json.ts';
import { junitReport } from '../reports/junit.ts';
import type { RunRecord } from '../reports/record.ts';
import { prepareFile, writeWhole } from '../reports/write.ts';
import { UsageError } from './usage-error.ts';

/** Where a run is reported, beside the terminal. */
export interface Outputs {
  readonly report?: string;
  readonly junit?: string;
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
export async function writeOutputs(outputs: Outputs, record: RunRecord): Promise<void> {
  const render = { '--report': htmlReport, '--junit': junitReport, '--json': jsonReport } as const;
  const failed: string[] = [];
  for (const [option, path] of filesOf(outputs)) {
    const content = await render[option](record);
    try {
      writeWhole(path, content);
    } catch (error) {
      failed.push(`${option} "${path}" could not be written: ${reasonOf(error)}`);
    }
  }
  if (outputs.json === true) process.stdout.write(jsonReport(record));
  if (failed.length > 0) throw new UsageError(failed.join('; '));
}

function filesOf({ report, junit, json }: Outputs): readonly (readonly ['--report' | '--junit' | '--json', string])[] {
  const all = [
    ['--report', report],
    ['--junit', junit],
    ['--json', json],
  ] as const;
  return all.flatMap(([option, path]) => (typeof path === 'string' ? [[option, path] as const] : []));
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
