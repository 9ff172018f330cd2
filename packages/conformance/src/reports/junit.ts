import { create } from 'xmlbuilder2';
import { type Row, type RunRecord, repeatOf, rowsOf } from './record.ts';
import { visible } from './visible.ts';
import { countOf } from './words.ts';

/**
 * The report of a run as CI systems read it: one test case for each requirement, named by its id. A MUST that fails is a
 * failure; a SHOULD that warns passes, with its finding as output; what does not apply or was not tried is skipped.
 * Characters that XML 1.0 forbids (section 2.2), or that are not seen, are written out.
 */
export function junitReport(record: RunRecord): string {
  const { suite, startedAt, seed, kitVersion } = record.report;
  const target = visible(record.report.target);
  const rows = rowsOf(record);
  const totals = {
    tests: rows.length,
    failures: countOf(rows, 'fail'),
    errors: 0,
    skipped: countOf(rows, 'not-applicable') + countOf(rows, 'not-tried'),
    time: seconds(rows.reduce((sum, { durationMs }) => sum + durationMs, 0)),
  };
  const root = create({ version: '1.0', encoding: 'UTF-8' });
  const all = root.ele('testsuites', { name: 'sealring-conformance', ...totals });
  // To the second, without a zone: the pattern of Jenkins' xUnit schema.
  const timestamp = startedAt.slice(0, 19);
  const cases = all.ele('testsuite', { name: `${suite}: ${target}`, ...totals, timestamp });
  const properties = cases.ele('properties');
  for (const [name, value] of Object.entries({ target, seed, kitVersion })) properties.ele('property', { name, value });
  for (const row of rows) {
    const element = cases.ele('testcase', { classname: suite, name: row.id, time: seconds(row.durationMs) });
    const { status } = row;
    const detail = visible(row.detail ?? '');
    if (status === 'fail') element.ele('failure', { type: row.level, message: detail }).txt(storyOf(record, row));
    else if (status === 'warn') element.ele('system-out').txt(storyOf(record, row));
    else if (status === 'not-applicable') element.ele('skipped', { message: detail });
    else if (status === 'not-tried') element.ele('skipped', { message: 'not tried: the run was interrupted' });
  }
  return `${root.end({ prettyPrint: true })}\n`;
}

function storyOf(record: RunRecord, { level, text, source, detail, id }: Row): string {
  return visible(`${level}: ${text}\nSource: ${source}\nFound: ${detail ?? ''}\nRepeat: ${repeatOf(record, id)}`);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
