import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GUIDE, type MutationScore, SCORES, withTables } from '../support/hardening-tables.ts';

const SURVIVORS = new URL('surviving-changes.md', GUIDE);

test('the tables of the hardening guide match the recorded results', () => {
  const guide = readFileSync(GUIDE, 'utf8');
  expect(guide).toBe(withTables(guide));
});

/** The places that the page on survivors names, by file: `line:column`. */
function explainedPlaces(): ReadonlyMap<string, ReadonlySet<string>> {
  const places = new Map<string, Set<string>>();
  let folder = '';
  let file = '';
  for (const [word] of readFileSync(SURVIVORS, 'utf8').matchAll(/^## .*|`[\w/-]+\.ts`|\b\d+:\d+\b/gm)) {
    if (word.startsWith('## ')) folder = word.slice(3);
    else if (word.startsWith('`')) file = `packages/${folder}/src/${word.slice(1, -1)}`;
    else places.set(file, (places.get(file) ?? new Set()).add(word));
  }
  return places;
}

test('the hardening guide explains every change that survived, and no other', () => {
  const scores: Record<string, MutationScore> = JSON.parse(readFileSync(SCORES, 'utf8'));
  const survived = Object.entries(scores).map(([file, { survivors }]): [string, ReadonlySet<string>] => [
    file,
    new Set(survivors.map((survivor) => survivor.slice(0, survivor.indexOf(' ')))),
  ]);
  expect(survived.length).toBeGreaterThan(50);
  const explained = explainedPlaces();
  expect([...explained.keys()].filter((file) => !Object.hasOwn(scores, file))).toEqual([]);
  for (const [file, places] of survived)
    expect([file, [...places].toSorted()]).toEqual([file, [...(explained.get(file) ?? [])].toSorted()]);
});
