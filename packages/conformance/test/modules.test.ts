import { expect, test } from 'vitest';
import { runCodecConformance } from '../src/index.ts';
import { loadTarget } from '../src/target-module.ts';

const IDS = ['CODEC-KEYSTREAM', 'CODEC-QUIET', 'CODEC-NO-TIMERS', 'CODEC-NO-GLOBALS', 'CODEC-NO-EXIT', 'CODEC-WORKERS'];

/** The results of the requirements about a process, for a module. */
async function statusOf(name: string, only = IDS): Promise<Record<string, string>> {
  const module = new URL(`./modules/${name}.ts`, import.meta.url);
  const target = (await loadTarget(module.href)) as Parameters<typeof runCodecConformance>[0];
  const { results } = await runCodecConformance(target, { module, only });
  return Object.fromEntries(results.map(({ id, status }) => [id, status]));
}

test('a sound module leaves its process unchanged, even if it prints on load', async () => {
  expect(await statusOf('sound')).toEqual(Object.fromEntries(IDS.map((id) => [id, 'pass'])));
});

test('keys that are equal in every process cause no finding', async () => {
  expect(await statusOf('keeps-its-keys')).toEqual(Object.fromEntries(IDS.map((id) => [id, 'pass'])));
});

test.each([
  ['counts-nonces', 'CODEC-KEYSTREAM', 'fail'],
  ['counts-nonces-by-thread', 'CODEC-KEYSTREAM', 'fail'],
  ['counts-nonces', 'CODEC-WORKERS', 'fail'],
  ['counts-nonces-by-process', 'CODEC-WORKERS', 'fail'],
  ['prints-past-the-console', 'CODEC-QUIET', 'fail'],
  ['leaves-a-timer-without-reference', 'CODEC-NO-TIMERS', 'warn'],
  ['patches-a-built-in', 'CODEC-NO-GLOBALS', 'warn'],
  ['changes-the-environment', 'CODEC-NO-GLOBALS', 'warn'],
  ['changes-the-folder', 'CODEC-NO-GLOBALS', 'warn'],
  ['changes-the-time-zone', 'CODEC-NO-GLOBALS', 'warn'],
  ['changes-the-title', 'CODEC-NO-GLOBALS', 'warn'],
  ['changes-the-umask', 'CODEC-NO-GLOBALS', 'warn'],
  ['patches-the-process', 'CODEC-NO-GLOBALS', 'warn'],
  ['sets-the-exit-code', 'CODEC-NO-GLOBALS', 'warn'],
  ['ends-the-process', 'CODEC-NO-EXIT', 'fail'],
  ['shares-memory-between-threads', 'CODEC-WORKERS', 'fail'],
])('a module that %s is caught by %s', async (name, id, status) => {
  expect(await statusOf(name, [id])).toEqual({ [id]: status });
});
