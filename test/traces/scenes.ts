import { parseDocument } from '@sealring/core/ring';
import { Dice } from '../simulator/dice.ts';
import { EPOCH_MS } from '../simulator/timeline.ts';
import { HOUR, MINUTE, SECOND } from '../simulator/world.ts';
import type { History } from './history.ts';
import { TracedMember } from './member.ts';
import type { Expected, Scene, Step } from './trace.ts';

/** Maximum number of steps of one scene. */
const LONGEST_SCENE = 60;
const STEADY_MS = 5_000_000;
/** How long a member waits for a call that hangs. */
const TROUBLES_MS: readonly number[] = [20 * SECOND, 10 * MINUTE, 2 * HOUR];
const SECOND_PROVIDER = 'second';
/** Longest wait of `prepare`. */
const PREPARE_MS = 2_000;

type Change = Pick<Step, 'clock' | 'store' | 'kms'>;

/** One line of a trace. */
export type Line = { readonly scene: Scene; readonly keys: History['keys'] } | (Step & { readonly expected: Expected });

/** A member that lives through part of a history, with its own faults and requests; all follows from the seed. */
export async function* scenesOf(history: History, seed: number, scenes: number): AsyncGenerator<Line> {
  const dice = new Dice(seed * 15_485_863 + 11);
  for (let i = 0; i < scenes; i++) yield* sceneOf(history, dice, i);
}

async function* sceneOf(history: History, dice: Dice, index: number): AsyncGenerator<Line> {
  const { versions } = history;
  const isEmpty = dice.chance(0.1);
  let at = Math.floor(dice.uniform() * Math.max(1, versions.length - 2));
  const nowMs = (versions[at]?.atMs ?? 0) + Math.floor(dice.between(0, MINUTE));
  const scene = drawScene(history, dice, index, nowMs);
  const member = new TracedMember({ ...scene }, history.keys);
  yield { scene, keys: history.keys };
  const make = async (step: Step): Promise<Line> => ({ ...step, expected: await member.step(step) });
  // High enough that a member does not call a failing service every second, which would only lengthen the trace.
  const word = (): number => Math.floor(dice.between(0.15, 1) * 2 ** 32);
  const first = isEmpty ? null : (versions[at]?.document ?? null);
  const isDated = dice.chance(0.8);
  const undated = { dateAheadMs: null };
  let health: Expected['health'] = null;
  let steppedMs = 0;
  try {
    const start: Step = {
      word: word(),
      op: 'start',
      store: { document: first, ...(isDated ? {} : undated), ...(dice.chance(0.05) ? { failing: 'unavailable' } : {}) },
      kms: {
        [scene.providers[0] ?? '']: {
          ...(isDated ? {} : undated),
          ...(dice.chance(0.05) ? { failing: 'denied' } : {}),
        },
      },
    };
    const started = await make(start);
    yield started;
    health = healthOf(started);
    if (health === null) return;
    let steady = expectedOf(started)?.atMs ?? STEADY_MS;
    for (let steps = 1; steps < LONGEST_SCENE; steps++) {
      // Advances the history of the fleet meanwhile.
      const next = versions[at + 1];
      const dueMs = next === undefined ? Number.POSITIVE_INFINITY : next.atMs - nowMs + STEADY_MS - steady;
      let store: Step['store'];
      if (next !== undefined && dueMs <= 0 && dice.chance(0.9)) {
        at += 1;
        store = { document: next.document };
      }
      const change = dice.chance(0.25) ? drawChange(dice, scene, versions[at]?.document ?? null, steppedMs) : {};
      steppedMs += change.clock?.stepMs ?? 0;
      const wish = drawWish(dice, health, dueMs);
      const step: Step = {
        word: word(),
        ...change,
        ...wish,
        ...(store === undefined ? {} : { store: { ...change.store, ...store } }),
      };
      const line = await make(step);
      yield line;
      health = healthOf(line);
      const before = steady;
      steady = expectedOf(line)?.atMs ?? steady;
      // After a wait that was given up, the result depends on the order of concurrent calls.
      if (step.op === 'prepare' && steady - before >= PREPARE_MS) return;
    }
  } finally {
    await member.close();
  }
}

function drawScene(history: History, dice: Dice, index: number, nowMs: number): Scene {
  const isPair = dice.chance(0.25);
  const { policy } = history;
  const skew = policy.clockSkewSeconds * 500;
  const wallMs = EPOCH_MS + nowMs;
  return {
    name: `${history.name}/${index}`,
    policy: { ...policy },
    create: dice.pick(['if-absent', 'if-absent', 'now', 'never']),
    providers: isPair ? ['simulated', SECOND_PROVIDER] : ['simulated'],
    wrapQuorum: isPair && dice.chance(0.5) ? 1 : null,
    keyVersions: dice.chance(0.3),
    acceptKeysCreatedAfterMs: dice.chance(0.1) ? wallMs - Math.floor(dice.between(0, 12 * HOUR)) : null,
    wallMs: wallMs + Math.floor(dice.between(-skew, skew)),
    steadyMs: STEADY_MS,
    trueAheadMs: wallMs - STEADY_MS,
  };
}

function drawChange(dice: Dice, scene: Scene, document: string | null, steppedMs: number): Change {
  const provider = dice.pick(scene.providers);
  const clear: Change = {
    ...(steppedMs === 0 ? {} : { clock: { stepMs: -steppedMs } }),
    store: { failing: null, dateAheadMs: 0 },
    kms: Object.fromEntries(
      scene.providers.map((name) => [name, { failing: null, wrapFailing: null, dateAheadMs: 0 }]),
    ),
  };
  return dice.pick<() => Change>([
    () => clear,
    () => clear,
    () => clear,
    () => ({ store: { failing: dice.pick(['unavailable', 'denied'] as const) } }),
    () => ({ store: { document: null } }),
    () => ({ store: { document: damaged(dice, document) } }),
    () => (document === null ? clear : { store: { race: document } }),
    () => ({ store: { losesAnswer: true } }),
    () => ({ store: { dateAheadMs: Math.floor(dice.between(-2 * HOUR, 2 * HOUR)) } }),
    // Two simultaneous retries would take as long as one, or twice as long: no rule decides which.
    () => ({ kms: { [scene.providers[0] ?? '']: { failing: dice.pick(['throttled', 'unavailable'] as const) } } }),
    () => ({ kms: { [provider]: { failing: dice.pick(['denied', 'disabled', 'not-found'] as const) } } }),
    () => ({ kms: { [provider]: { wrapFailing: 'denied' } } }),
    () => ({ kms: { [provider]: { keyId: `key/${1 + Math.floor(dice.uniform() * 3)}` } } }),
    () => ({ kms: { [provider]: { dateAheadMs: Math.floor(dice.between(-2 * HOUR, 2 * HOUR)) } } }),
    () => ({
      clock: {
        stepMs: Math.floor(dice.pick([-1, 1]) * dice.pick([10 * MINUTE, 14 * HOUR, 72 * HOUR]) * dice.uniform()),
      },
    }),
    () => ({ clock: { sleptMs: Math.floor(dice.between(SECOND, 5 * HOUR)) } }),
  ])();
}

function drawWish(dice: Dice, health: Expected['health'], dueMs: number): Pick<Step, 'op' | 'argument'> {
  const ids = health?.keys.map(([id]) => id) ?? [];
  // A failed call is repeated without an end, which shows nothing new after a while.
  const longestMs = health?.lastError === null ? 3 * HOUR : 10 * MINUTE;
  const advance = (ms: number): Pick<Step, 'op' | 'argument'> => ({
    op: 'advance',
    argument: Math.max(1, Math.floor(Math.min(ms, longestMs))),
  });
  const toNext = (): Pick<Step, 'op' | 'argument'> => advance(Math.min(Math.max(dueMs, SECOND), 3 * HOUR));
  return dice.pick<() => Pick<Step, 'op' | 'argument'>>([
    toNext,
    toNext,
    () => advance(dice.between(100, 12 * SECOND)),
    () => advance(dice.between(SECOND, 10 * MINUTE)),
    () => advance(dice.pick(TROUBLES_MS)),
    () => ({ op: 'refresh' }),
    () => ({ op: 'refresh' }),
    () => ({ op: 'rotate', argument: dice.pick(['requested', 'emergency']) }),
    () => (ids.length === 0 ? { op: 'refresh' } : { op: 'revoke', argument: dice.pick(ids) }),
    () =>
      dice.chance(0.2)
        ? { op: 'revoke-before', argument: EPOCH_MS + Math.floor(dice.between(0, 20 * HOUR)) }
        : { op: 'push' },
    () => (dice.chance(0.1) ? { op: 'revoke', argument: 'AAAAAAAAAAAA' } : { op: 'seal' }),
    () => ({ op: 'seal' }),
    () => ({ op: 'push' }),
    () => ({ op: dice.pick(['unseal', 'prepare'] as const), argument: strangersToken(dice) }),
  ])();
}

/** A well-formed token under a key that is in no ring. */
function strangersToken(dice: Dice): string {
  const bytes = new Uint8Array(73);
  dice.source(bytes);
  return `sr1.${Buffer.from(bytes.subarray(0, 45)).toString('base64url')}${Buffer.from(bytes.subarray(45)).toString('base64url')}`;
}

/** An incomplete or invalid document. */
function damaged(dice: Dice, document: string | null): string {
  if (document === null || dice.chance(0.3)) return dice.pick(['', 'x', '{}', '[]', '{"format":"sealring/ring/1"}']);
  const parsed: { keys: Record<string, unknown>[] } = JSON.parse(isWellFormed(document) ? document : '{"keys":[]}');
  const key = parsed.keys[Math.floor(dice.uniform() * parsed.keys.length)];
  if (key !== undefined) {
    dice.pick<() => void>([
      () => parsed.keys.splice(parsed.keys.indexOf(key), 1),
      () => delete key['revoked'],
      () => delete key['ancestors'],
      () => (key['vouchers'] = {}),
      () => (key['opensUntil'] = '2027-06-01T00:00:00Z'),
      () => (parsed.keys = parsed.keys.toReversed()),
    ])();
  }
  return JSON.stringify(parsed);
}

function isWellFormed(document: string): boolean {
  try {
    parseDocument(document);
    return true;
  } catch {
    return false;
  }
}

function expectedOf(line: Line): Expected | undefined {
  return 'expected' in line ? line.expected : undefined;
}

function healthOf(line: Line): Expected['health'] {
  return expectedOf(line)?.health ?? null;
}
