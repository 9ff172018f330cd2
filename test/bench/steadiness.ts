import { CreateKeyCommand } from '@aws-sdk/client-kms';
import type { RingPolicy } from '@sealring/core';
import { emulatorClient } from '../fleet/kms-fleet.ts';
import { startMoto } from '../support/moto.ts';
import { startRedis } from '../support/redis.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { CONDITIONS, type Condition, DISTURBANCES, untilQuiet, type World } from './steadiness-disturbances.ts';
import type { LoadOrders } from './steadiness-load.ts';
import { Program } from './steadiness-program.ts';
import { addedUp, type Phase, type SteadinessReport, summarise } from './steadiness-report.ts';
import type { ServerOrders } from './steadiness-server.ts';

export { judgeSteadiness, type SteadinessReport } from './steadiness-report.ts';

export interface SteadinessOptions {
  /** Default: all of them. */
  readonly conditions?: readonly Condition[];
  /** Rounds of every condition. Fewer than 6 give no bounds for a ratio; a ring has room for 20. */
  readonly rounds: number;
  /** Length of each phase, and of each quiet one between: at least 1, and 4 for a new key to seal in its phase. */
  readonly phaseSeconds: number;
  /** Length of the warm-up, and then of the measurement of the highest rate. */
  readonly warmUpSeconds: number;
  /** Valid requests per second. Default: a third of the rate of clients that wait for their answers. */
  readonly rate?: number;
}

const CLIENTS = 4;
const SHARE_OF_CLOSED_LOOP = 1 / 3;
const MOST_ROUNDS = 20;
const LEAST_PHASE_SECONDS = 1;

/**
 * A server on AWS KMS and Redis under a load of a fixed rate, alternately while all is quiet and while it is disturbed.
 * @throws {RangeError} for more rounds than the ring has room for, or phases too short for anything to happen.
 */
export async function measureSteadiness(
  options: SteadinessOptions,
  progress: (done: number) => void,
): Promise<SteadinessReport> {
  const { conditions = CONDITIONS, rounds, phaseSeconds, warmUpSeconds } = options;
  if (rounds > MOST_ROUNDS) throw new RangeError(`rounds must be at most ${MOST_ROUNDS}, got ${rounds}`);
  if (!(phaseSeconds >= LEAST_PHASE_SECONDS)) {
    throw new RangeError(`phaseSeconds must be at least ${LEAST_PHASE_SECONDS}, got ${phaseSeconds}`);
  }
  await using world = await startWorld(policyFor(phaseSeconds));
  const { load } = world;
  const measuredRate = async (): Promise<number> => {
    await load.ask('closedLoop', { seconds: warmUpSeconds, clients: CLIENTS });
    return load.ask('closedLoop', { seconds: warmUpSeconds, clients: CLIENTS });
  };
  const closedLoopRate = options.rate === undefined ? await measuredRate() : undefined;
  const rate = options.rate ?? Math.max(1, Math.round((closedLoopRate ?? 0) * SHARE_OF_CLOSED_LOOP));
  await load.ask('start', { rate });
  // At the measured rate, once all clients have settled.
  const { counts: warmUp } = await load.ask('measure', { seconds: warmUpSeconds });
  const phases: Phase[] = [];
  const took = (phase: Phase): void => {
    phases.push(phase);
    progress(phases.length / (2 * rounds * conditions.length + 1));
  };
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < conditions.length; i++) {
      // Each condition comes first once, and follows every other condition once.
      const condition = conditions[(i + round) % conditions.length];
      if (condition === undefined) continue;
      took(await quietPhase(world, phaseSeconds));
      took(await disturbedPhase(world, phaseSeconds, condition));
    }
  }
  took(await quietPhase(world, phaseSeconds));
  const rest = await load.ask('stop');
  const besides = addedUp([warmUp, rest]);
  return { closedLoopRate, rate, rounds, phaseSeconds, conditions: summarise(phases), besides };
}

async function quietPhase(world: World, seconds: number): Promise<Phase> {
  await untilQuiet(world.server);
  await world.server.ask('record');
  const load = await world.load.ask('measure', { seconds });
  return { condition: 'quiet', load, recording: await world.server.ask('take'), disturbances: 0 };
}

async function disturbedPhase(world: World, seconds: number, condition: Condition): Promise<Phase> {
  const disturbance = DISTURBANCES[condition];
  await disturbance.begin?.(world);
  await world.server.ask('record');
  const measured = async () => {
    const load = await world.load.ask('measure', { seconds });
    return { load, recording: await world.server.ask('take') };
  };
  const [{ load, recording }, happened] = await Promise.all([measured(), disturbance.during?.(world, seconds)]);
  await disturbance.end?.(world);
  return { condition, load, recording, disturbances: happened ?? load.counts.hostile };
}

/**
 * The times are short enough that everything happens within a phase: a published key seals, and the server notices a
 * KMS or store that fails. So a quiet phase has three reads of the ring and three KMS checks; by the defaults a server
 * has one in five minutes.
 */
function policyFor(phaseSeconds: number): Partial<RingPolicy> {
  const outageSeconds = 60 + 10 * phaseSeconds;
  return {
    clockSkewSeconds: 1,
    refreshEverySeconds: phaseSeconds / 3,
    kmsCheckEverySeconds: phaseSeconds / 3,
    backoffCapSeconds: Math.min(0.5, phaseSeconds / 2),
    kmsTimeoutSeconds: 0.5 + phaseSeconds / 10,
    sealOutageSeconds: outageSeconds,
    storeOutageSeconds: outageSeconds,
    // No key rotates by schedule.
    rotateEverySeconds: 86_400,
  };
}

async function startWorld(policy: Partial<RingPolicy>): Promise<World & AsyncDisposable> {
  const closing: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of closing.toReversed()) await step();
  };
  try {
    // Keeps acknowledged writes when it is killed.
    const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
    closing.push(() => redis.stop());
    const moto = await startMoto();
    closing.push(() => moto.stop());
    const admin = emulatorClient(moto.address);
    const { KeyMetadata } = await admin.send(new CreateKeyCommand({}));
    admin.destroy();
    const kms = await startTcpProxy(Number(new URL(moto.address).port));
    closing.push(() => kms.close());
    const server = await Program.fork<ServerOrders>('steadiness-server.ts');
    closing.push(() => server.stop());
    const endpoint = `http://${kms.host}:${kms.port}`;
    const given = { kms: { endpoint, keyId: KeyMetadata?.Arn ?? '' }, redis: redis.address, policy };
    const url = await server.ask('start', given);
    const load = await Program.fork<LoadOrders>('steadiness-load.ts');
    closing.push(() => load.stop());
    await load.ask('prepare', { url });
    return { server, load, kms, redis, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
