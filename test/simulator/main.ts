import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FAULT_CLASSES } from './faults.ts';
import { picture } from './picture.ts';
import { faultClass, type RunReport, simulate } from './simulate.ts';
import { HOUR, type WorldOptions } from './world.ts';

const HELP = `Runs the real keeper, schedule and codec of a whole fleet on a virtual clock.

  npm run simulate -- [options]

  --members N      processes in the fleet, default 20
  --days N         days of virtual time, default 7
  --seed N         everything random follows from it, default 1
  --faults A,B     classes of faults, or "all"; default quiet
  --loss P         share of lost calls, 0 to 1, default 0.02
  --skew S         largest difference between two clocks, seconds; also the ring's clockSkew; default 600
  --quantum MS     events let loose together, milliseconds; default 20 up to 200 members, else 1000
  --out DIR        where report.json and report.svg go, default .cache/simulation
  --trace          tell everything that happens

  classes of faults: ${Object.keys(FAULT_CLASSES).join(', ')}

  npm run simulate -- --faults store-flush,crash --seed 7
`;

const { values } = parseArgs({
  options: {
    members: { type: 'string', default: '20' },
    days: { type: 'string', default: '7' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string', default: 'quiet' },
    loss: { type: 'string', default: '0.02' },
    skew: { type: 'string', default: '600' },
    quantum: { type: 'string' },
    out: { type: 'string', default: '.cache/simulation' },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) {
  process.stdout.write(HELP);
} else {
  process.exitCode = await run();
}

async function run(): Promise<number> {
  const members = number('members', values.members, 1, 100_000);
  const options: WorldOptions = {
    members,
    days: number('days', values.days, 1, 366),
    seed: number('seed', values.seed, 0, 2 ** 31),
    loss: number('loss', values.loss, 0, 0.5),
    clockSkewSeconds: number('skew', values.skew, 0, 3_600),
    quantumMs: number('quantum', values.quantum ?? (members <= 200 ? '20' : '1000'), 1, 10_000),
  };
  const faults = values.faults === 'all' ? Object.keys(FAULT_CLASSES) : values.faults.split(',');
  for (const name of faults) faultClass(name);
  const started = Date.now();
  let told = started;
  let isWanted = true;
  // What was simulated so far is not lost.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isWanted = false;
      process.stderr.write('  ending after this hour; once more to end at once\n');
    });
  }
  const report = await simulate(options, faults, {
    onHour: ({ hour, failed }) => {
      if (Date.now() - told >= 2_000) {
        told = Date.now();
        process.stderr.write(`  ${hour} of ${options.days * 24} hours, ${failed} failed\n`);
      }
      return isWanted;
    },
    ...(values.trace && { trace: (atMs: number, line: string) => process.stdout.write(`${hours(atMs)}  ${line}\n`) }),
  });
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, 'report.json'), `${JSON.stringify(report, undefined, 2)}\n`);
  writeFileSync(join(values.out, 'report.svg'), picture(report));
  process.stdout.write(summary(report, values.out));
  return report.violationCount === 0 ? 0 : 1;
}

function summary(report: RunReport, out: string): string {
  const { options, tokens, calls, ring, propagationSeconds, violations } = report;
  const slowest = Math.max(0, ...propagationSeconds);
  const repeat =
    `npm run simulate -- --members ${options.members} --days ${options.days} --seed ${options.seed} ` +
    `--loss ${options.loss} --skew ${options.clockSkewSeconds} --quantum ${options.quantumMs} --faults ${options.faults.join(',')}`;
  return [
    `${options.members} members, ${Number((report.hours.length / 24).toFixed(2))} days, seed ${options.seed}; faults: ${options.faults.join(', ')}`,
    `tokens      ${tokens.sealed} sealed, ${tokens.opened} opened, ${tokens.failed} failed`,
    `excused     ${tokens.excusedSeals} seals, ${tokens.excusedOpens} opens, ${tokens.excusedAtOnce} opens of a key that was just made active at once`,
    `KMS         ${calls.kms} calls, ${calls.kmsPerMemberDay.toFixed(1)} per member and day${formula(calls.expected?.kms)}; ${calls.generated} data keys made`,
    `store       ${calls.store} calls, ${calls.storePerMemberDay.toFixed(1)} per member and day${formula(calls.expected?.store)}`,
    `ring        epoch ${ring.epoch}, ${ring.keys} keys, never more than ${ring.mostKeys}`,
    `propagation ${propagationSeconds.length} keys, the slowest ${slowest} s to the last member`,
    `written     ${join(out, 'report.json')}, ${join(out, 'report.svg')}`,
    ...violations.map(({ atMs, law, detail }) => `FAILED      ${hours(atMs)}  ${law}: ${detail}`),
    ...(violations.length === 0 ? [] : [`repeat with ${repeat} --trace`]),
    '',
  ].join('\n');
}

function formula(expected: number | undefined): string {
  return expected === undefined ? '' : ` (by the formula ${expected.toFixed(1)})`;
}

function hours(ms: number): string {
  return `${(ms / HOUR).toFixed(3)} h`;
}

function number(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= min && value <= max)) {
    throw new RangeError(`--${name} must be a number from ${min} to ${max}, got ${JSON.stringify(text)}`);
  }
  return value;
}
