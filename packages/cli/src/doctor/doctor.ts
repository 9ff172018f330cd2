import type { KeyWrapper } from '@sealring/core';
import { policyOf } from '../ring/policy.ts';
import { keyWrappersOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { checkAwsKey } from './check-aws-key.ts';
import { ServiceDates } from './check-clock.ts';
import { checkKms } from './check-kms.ts';
import { checkProcess } from './check-process.ts';
import { checkRing } from './check-ring.ts';
import { checkSettings } from './check-settings.ts';
import { checkSingleUse } from './check-single-use.ts';
import { checkKind, checkProbe, checkRead, checkWritePermission, unprobed } from './check-store.ts';
import type { CurrentVersion } from './check-versions.ts';
import type { DoctorReport, Finding } from './finding.ts';

/** Options of {@link runDoctor}. */
export interface DoctorOptions {
  /** The environment of the servers. Default: the environment of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** The doctor waits this many times as long as a server, because a slow answer is more informative than a timeout. */
const PATIENCE = 2;

/**
 * Checks everything that a server needs in order to use a ring. Each warning and error has a remedy. Writes nothing to
 * the ring; with a probe, it writes to the location of the probe and removes what it wrote; with a single-use store, it
 * claims a random id.
 *
 * @param config - The options that the servers pass to `createKmsCodec`. Their stores and key wrappers are not closed.
 * @returns all findings; `healthy` is true if none of them is an error. An error of a service is reported as a finding
 * and not thrown.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto';
 * import { runDoctor } from '@sealring/cli';
 * import { localKeyWrapper, memoryRing } from '@sealring/core';
 *
 * const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
 * const { healthy, findings } = await runDoctor({ keyWrapper, ring: memoryRing() });
 * ```
 */
export async function runDoctor(config: SealringConfig, options: DoctorOptions = {}): Promise<DoctorReport> {
  const { role = 'member', ring, clock } = config;
  const name: unknown = ringNameOf(config);
  const report = (findings: readonly Finding[], wrote: readonly string[] = []): DoctorReport => ({
    healthy: findings.every(({ severity }) => severity !== 'error'),
    // A name that is not text is reported as a finding.
    ring: typeof name === 'string' ? name : 'invalid',
    role,
    findings,
    wrote,
  });
  const process = checkProcess(config, options.environment ?? globalThis.process.env);
  const settings = await checkSettings(config);
  const first = [...settings, ...process, ...checkKind(ring, role)];
  // Servers would not start with these options, so further findings would be misleading.
  if (settings.some(({ severity }) => severity === 'error')) return report(first);

  const times = policyOf(config);
  const wallMs = (): number => clock?.wallMs() ?? Date.now();
  const dates = new ServiceDates(wallMs);
  const signal = (): AbortSignal => AbortSignal.timeout(times.kmsTimeoutSeconds * PATIENCE * 1_000);
  const call = (): { signal: AbortSignal; onServiceDate: (date: Date) => void } => ({
    signal: signal(),
    onServiceDate: dates.noteOf('the ring store'),
  });

  const kms: Finding[] = [];
  const versions: CurrentVersion[] = [];
  for (const [index, wrapper] of keyWrappersOf(config).entries()) {
    if (role === 'member') {
      const onServiceDate = dates.noteOf(`the KMS (${wrapper.provider})`);
      const context = contextOf(config);
      const { finding, current } = await checkKms(wrapper, index === 0, { context, onServiceDate, signal: signal() });
      kms.push(finding);
      if (current !== undefined) versions.push(current);
    }
    kms.push(...(await stateOf(wrapper, signal())));
  }

  const read = await checkRead(ring, call());
  const store = [read.finding];
  const wrote: string[] = [];
  if (role === 'member') {
    if (read.kind === 'held') store.push(await checkWritePermission(ring, read.document, call()));
    if (config.probe === undefined) store.push(unprobed(ring));
    else {
      const probed = await checkProbe(config.probe, call());
      store.push(probed.finding);
      wrote.push(...probed.wrote);
    }
  }
  if (config.singleUse !== undefined) {
    const { clockSkewSeconds } = times;
    const used = await checkSingleUse(config.singleUse, { clockSkewSeconds, wallMs: wallMs(), signal: signal() });
    store.push(...used.findings);
    wrote.push(...used.wrote);
  }
  const document = read.kind === 'held' ? await checkRing(config, read.document, versions, times, wallMs()) : [];
  return report(withoutRepeats([...first, ...kms, ...store, ...document, ...dates.findings(times)]), wrote);
}

/** The encryption context of the ring, so that conditions in a key policy are met. */
function contextOf(config: SealringConfig): Readonly<Record<string, string>> {
  return { 'sealring:ring': ringNameOf(config), 'sealring:purpose': 'data-key', 'sealring:times': 'doctor' };
}

async function stateOf(wrapper: KeyWrapper, signal: AbortSignal): Promise<readonly Finding[]> {
  return wrapper.provider === 'aws-kms' ? checkAwsKey(wrapper, signal) : [];
}

/** Removes repeated findings: a disabled key makes every call fail, and one finding is enough. */
function withoutRepeats(findings: readonly Finding[]): readonly Finding[] {
  const seen = new Set<string>();
  return findings.filter(({ id, severity, what }) => {
    const key = `${id} ${severity} ${what}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
