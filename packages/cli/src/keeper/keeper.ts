import type { KmsCodec } from '@sealring/core';
import { HealthServer } from '../health/health-server.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt, open, openForServer } from '../ring/open.ts';
import { statusOf } from '../ring/status.ts';
import { nowOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { waits } from '../terminal/until-stopped.ts';
import { UsageError } from '../usage-error.ts';
import type { KeeperEvent, Report } from './events.ts';
import { HealthLog } from './health-log.ts';

/** Interval at which the codec's health is compared with the last report, without a call to the KMS or the store. */
const LOOK_EVERY_MS = 1_000;
/** How long a single run waits for the codec to repair the ring: a repair begins at most ten seconds after a read. */
const SETTLE_MS = 15_000;

/** The address for the probes of an orchestrator. */
export interface KeeperOptions {
  readonly host: string;
  readonly healthPort: number | undefined;
}

interface Running {
  readonly stop: AbortSignal;
  readonly report: Report;
}

/**
 * Runs a member until `stop` is aborted.
 * @throws {Failure | UsageError} if it cannot start.
 */
export async function runKeeper(
  config: SealringConfig,
  { host, healthPort }: KeeperOptions,
  { stop, report }: Running,
): Promise<void> {
  checkRole(config);
  const log = new HealthLog(report);
  let codec: KmsCodec | undefined;
  const probes = new HealthServer(() => (codec === undefined || stop.aborted ? { ready: false } : codec.health()));
  try {
    if (healthPort !== undefined) report({ event: 'health', url: await probes.listen(host, healthPort) });
    codec = await openForServer(config, stop);
    report(startedEvent(codec, config));
    log.begin(codec.health());
    while (await waits(LOOK_EVERY_MS, stop)) log.observe(codec.health());
  } catch (error) {
    // The keeper was stopped before it had started.
    if (error !== stop.reason) throw error;
  } finally {
    if (stop.aborted) report({ event: 'stopping' });
    log.close();
    await codec?.close();
    probes.close();
  }
}

/**
 * Does the work that is due, once: reads and repairs the ring, makes a KMS check, and publishes a successor if one is
 * due. Does not create a ring.
 *
 * @returns whether a key seals and nothing needs attention; false if `stop` was aborted before the end.
 * @throws {Failure | UsageError} if the ring cannot be read, unwrapped or written.
 */
export async function keepOnce(config: SealringConfig, { stop, report }: Running): Promise<boolean> {
  checkRole(config);
  const log = new HealthLog(report);
  let codec: KmsCodec | undefined;
  try {
    codec = await open(config, { role: 'member', create: 'never', signal: stop });
    report(startedEvent(codec, config));
    log.begin(codec.health());
    await doWhatIsDue(codec, config, stop);
    const health = codec.health();
    log.observe(health);
    const { condition, nextRotation, problems } = await statusOf(codec, config);
    const reported = new Set(health.problems.map(({ kind }): string => kind));
    for (const problem of problems) if (!reported.has(problem.kind)) report({ event: 'problem', ...problem });
    report({ event: 'done', condition, nextRotation, lastKmsCheck: health.lastKmsCheck });
    return condition === 'ok' && health.status === 'ok';
  } catch (error) {
    if (!stop.aborted) throw error;
    report({ event: 'stopping' });
    return false;
  } finally {
    log.close();
    await codec?.close();
  }
}

/** @throws {UsageError} for a reader, which does not write. */
function checkRole({ role }: SealringConfig): void {
  if (role === 'reader') throw new UsageError('the keeper publishes keys: the configuration must have role "member"');
}

function startedEvent(codec: KmsCodec, config: SealringConfig): KeeperEvent {
  const { sealingKey } = codec.health();
  return {
    event: 'started',
    ring: ringNameOf(config),
    store: config.ring.location ?? config.ring.kind,
    sealingKey: sealingKey === undefined ? undefined : keyName(sealingKey),
  };
}

async function doWhatIsDue(codec: KmsCodec, config: SealringConfig, stop: AbortSignal): Promise<void> {
  await attempt('reading the ring', () => codec.refresh());
  const { nextRotation } = await statusOf(codec, config);
  const nowMs = nowOf(config);
  stop.throwIfAborted();
  if (nextRotation !== undefined && nextRotation.getTime() <= nowMs) await attempt('rotating', () => codec.rotate());
  const end = AbortSignal.any([stop, AbortSignal.timeout(SETTLE_MS)]);
  while (codec.health().status === 'degraded' && (await waits(LOOK_EVERY_MS, end)));
  stop.throwIfAborted();
}
