import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';

/** What each broken target is told, by its name. */
type Findings = Record<string, string>;

const RECORD = new URL('findings.json', import.meta.url);
const IS_RECORDING = process.env['SEALRING_RECORD'] === '1';
const recorded: Readonly<Record<string, Findings>> = JSON.parse(readFileSync(RECORD, 'utf8'));

/**
 * Compares the findings of a suite with `findings.json`, so that each broken target is caught by the check that is meant for
 * it. `SEALRING_RECORD=1` writes the record instead.
 */
export function recordedFindings(suite: string): (name: string, detail: string | undefined) => void {
  const made: Findings = {};
  afterAll(() => {
    if (!IS_RECORDING) return;
    const all = JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, Findings>;
    const sorted = Object.fromEntries(Object.entries(made).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(RECORD, `${JSON.stringify({ ...all, [suite]: sorted }, undefined, 2)}\n`);
  });
  return (name, detail = '') => {
    if (VARYING.has(name)) return;
    const lasting = lastingIn(detail);
    if (IS_RECORDING) made[name] = lasting;
    else expect(lasting, name).toBe(recorded[suite]?.[name]);
  };
}

/** Broken targets that one of several variants catches, depending on their keys and on the time. */
const VARYING = new Set([
  'accepts short tags',
  'overwrites an unwrapped data key shortly after the call',
  'a cache: sends more than ten concurrent reads to a replica',
  'caches reads',
  'ignores a doubled character',
]);

/** A finding without what differs between runs: values in quotes, numbers, bytes and places in files. */
function lastingIn(detail: string): string {
  return detail
    .replace(/ \(seed \d+\)$/, '')
    .replaceAll(/ at \S+\.[jt]s:\d+(?::\d+)?/g, '')
    .replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, '…')
    .replaceAll(/kit-\d+-\S+/g, '…')
    .replaceAll(/\b[0-9a-f]{8,}…?/g, '…')
    .replaceAll(/(?<=\bwith )\S(?= (?:as|for) )/g, '…')
    .replaceAll(/\d+(?:[.,:]\d+)*/g, '#');
}
