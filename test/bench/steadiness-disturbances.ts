import { setTimeout as pause } from 'node:timers/promises';
import type { TestServer } from '../support/redis.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import type { LoadOrders } from './steadiness-load.ts';
import type { Program } from './steadiness-program.ts';
import type { ServerHealth, ServerOrders } from './steadiness-server.ts';

export const CONDITIONS = ['refresh', 'rotation', 'KMS hang', 'KMS outage', 'store restart', 'hostile tokens'] as const;
export type Condition = (typeof CONDITIONS)[number];

/** The server, and everything around it that can be disturbed. */
export interface World {
  readonly server: Program<ServerOrders>;
  readonly load: Program<LoadOrders>;
  /** The proxy between the server and its KMS. */
  readonly kms: TcpProxy;
  readonly redis: TestServer;
}

/** An activity in addition to the load. */
export interface Disturbance {
  /** Runs until the server notices. Not measured. */
  begin?(world: World): Promise<unknown>;
  /** Runs during the measurement. Returns the number of disturbances; by default the attackers' requests count. */
  during?(world: World, seconds: number): Promise<number>;
  /** Runs after the disturbance; it is not measured either. */
  end?(world: World): Promise<unknown>;
}

const REFRESH_EVERY_SECONDS = 0.1;
/** Published one after another at the beginning, and activated one after another at the end. */
const ROTATIONS = 3;
/** Seconds of measured time between two publications, and until a killed store starts again at the earliest. */
const ROTATE_SHARE = 0.125;
const RESTART_SHARE = 0.6;
const LONGEST_WAIT_MS = 60_000;

export const DISTURBANCES: Readonly<Record<Condition, Disturbance>> = {
  refresh: {
    during: ({ server }, seconds) => server.ask('refreshFor', { seconds, everySeconds: REFRESH_EVERY_SECONDS }),
  },

  rotation: {
    async during({ server }, seconds) {
      for (let rotation = 0; rotation < ROTATIONS; rotation++) {
        if (rotation > 0) await pause(seconds * ROTATE_SHARE * 1_000);
        await server.ask('rotate');
      }
      return ROTATIONS;
    },
  },

  // Counts the failed connections. Once the server notices this, its KMS check is overdue, so the boundary waits for
  // another one before each unseal, for 2 s at most: that wait counts as latency of the request, not of the operation.
  'KMS hang': {
    async begin({ kms, server }) {
      kms.hang();
      await untilIt(server, ({ lastError }) => lastError === 'kms unavailable');
    },
    during: ({ kms }, seconds) => connectionsOf(kms, seconds),
    end: async ({ kms }) => kms.mend(),
  },

  'KMS outage': {
    async begin({ kms, server }) {
      kms.cut();
      await untilIt(server, ({ lastError }) => lastError === 'kms unavailable');
    },
    during: ({ kms }, seconds) => connectionsOf(kms, seconds),
    end: async ({ kms }) => kms.mend(),
  },

  'store restart': {
    async during({ redis, server }, seconds) {
      await redis.kill();
      const felt = untilIt(server, ({ lastError }) => lastError === 'store unavailable');
      await Promise.all([felt, pause(seconds * RESTART_SHARE * 1_000)]);
      await redis.start();
      return 1;
    },
  },

  'hostile tokens': {
    begin: ({ load }) => load.ask('hostile', { on: true }),
    end: ({ load }) => load.ask('hostile', { on: false }),
  },
};

/** Waits until the server is healthy and no key propagates, so that the next phase is quiet. */
export function untilQuiet(server: Program<ServerOrders>): Promise<void> {
  return untilIt(server, ({ status, isPropagating }) => status === 'ok' && !isPropagating);
}

async function connectionsOf(kms: TcpProxy, seconds: number): Promise<number> {
  const before = kms.accepted;
  await pause(seconds * 1_000);
  return kms.accepted - before;
}

async function untilIt(server: Program<ServerOrders>, holds: (health: ServerHealth) => boolean): Promise<void> {
  const until = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const health = await server.ask('health');
    if (holds(health)) return;
    if (performance.now() > until) throw new Error(`the server stays as it is: ${JSON.stringify(health)}`);
    await pause(20);
  }
}
