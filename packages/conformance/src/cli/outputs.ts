import { randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { htmlReport } from '../reports/html.ts';
import { type RunRecord, visible } from '../reports/record.ts';
import { UsageError } from './messages.ts';

/**
 * Checks that a report can be written to a path later: creates its folder, and a test file that it removes again.
 *
 * @throws {Error} of the file system, with a code; without a code if the path is not a regular file.
 */
export function prepareFile(path: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true });
  checkPlace(path);
  const probe = temporaryOf(path);
  writeFileSync(probe, '', { flag: 'wx' });
  rmSync(probe);
}

/** Writes a file atomically: readers see the old or the new content. */
export function writeWhole(path: string, content: string): void {
  checkPlace(path);
  const temporary = temporaryOf(path);
  try {
    writeFileSync(temporary, content, { flag: 'wx', flush: true });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Rejects a folder, and a device such as /dev/null, which a rename would replace with a file. */
function checkPlace(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== false) return;
  throw new Error('the path is not a regular file');
}

/** A path for a temporary file in the same folder, since a rename is atomic only within one file system. */
function temporaryOf(path: string): string {
  return join(dirname(resolve(path)), `.sealring-${randomUUID()}.tmp`);
}

export interface Outputs {
  readonly report?: string;
  /** `true`: standard output. */
  readonly json?: string | true;
}

/** Checks the files before a run, so that no finished run is lost. @throws {UsageError} if one cannot be written. */
export function checkOutputs(outputs: Outputs): void {
  const seen = new Map<string, string>();
  for (const [option, path] of filesOf(outputs)) {
    if (path === '' || /[/\\]$/.test(path)) throw new UsageError(`${option} "${path}" is not the name of a file`);
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

/** Writes every requested report, even if one of them fails. @throws {UsageError} for the failed ones. */
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

/** The report as JSON, indented by two spaces, with invisible characters escaped: `\u202e`. */
export function jsonReport({ report }: RunRecord): string {
  return `${visible(JSON.stringify(report, undefined, 2))}\n`;
}
