import { disagreement, mutualRefusal } from '../agreement.ts';
import { misshapen } from '../format-law.ts';
import type { SimulatedMember } from '../member.ts';
import type { Oracle } from '../oracle.ts';
import { MINUTE, SECOND, type World } from '../world.ts';

const TRIES = 5;
const TRY_AGAIN_MS: number = 5 * SECOND;
/** Members that revoke and rotate at the end; more would only fill the ring. */
const OPERATED = 4;

/** What must hold once the attacker has stopped, and the last fault is over. */
export async function judgeAfterwards(world: World, oracle: Oracle): Promise<void> {
  const { timeline, options, dice } = world;
  const pass = (ms: number): Promise<void> => timeline.advance(timeline.nowMs + ms, options.quantumMs);
  const stoppedAt = timeline.nowMs;
  // Members that were down until now have begun to start.
  if (world.mayWrap) await pass(options.quantumMs);
  const deceived = world.mayWrap ? deceivedOf(world) : [];
  // No member with the genuine ring is left: nothing can prevent this.
  if (deceived.length === world.members.length) return;
  for (const member of deceived) member.crash();
  await pass(dice.between(0, MINUTE));
  const first = world.anyMember();
  if (first !== undefined) await wished(world, oracle, first, 'revoke');
  await pass(stoppedAt + world.settleMs - timeline.nowMs);
  const others = world.members.filter((member) => !deceived.includes(member));
  judgeAgreement(world, oracle, others, '2 R + 60 s after the attacker stopped');
  for (const member of deceived) member.start();
  await pass(3 * MINUTE);
  const writes = world.store.history.length;
  await pass(15 * MINUTE);
  // A rotation may be due at this moment.
  if (world.store.history.length - writes > 4) {
    oracle.report('no endless fight', `${world.store.history.length - writes} writes in 15 quiet minutes`);
  }
  const starter = world.newMember('the starter', 0);
  starter.onStartFailure = (error) => oracle.caught(error, 'the starter starts');
  starter.start();
  await pass(2 * MINUTE);
  const everybody = [...world.members, starter];
  judgeAgreement(world, oracle, everybody, 'with one that has just started');
  for (const member of world.members.slice(0, OPERATED)) {
    await wished(world, oracle, member, 'rotate');
    await wished(world, oracle, member, 'revoke');
  }
  await pass(oracle.excuses.refreshMs + MINUTE);
  judgeAgreement(world, oracle, everybody, 'after revocations and rotations');
  starter.crash();
}

/**
 * With permission to wrap, an attacker can deceive a start: members that started meanwhile, or start before the store
 * is repaired, are ended, and started again at the end.
 */
function deceivedOf(world: World): readonly SimulatedMember[] {
  const { from = Number.POSITIVE_INFINITY } = world.hostility.spells.at(-1) ?? {};
  return world.members.filter((member) => (member.startedAtMs ?? 0) >= from || !member.isUp);
}

function judgeAgreement(world: World, oracle: Oracle, members: readonly SimulatedMember[], when: string): void {
  const down = members.filter((member) => !member.isUp);
  if (down.length > 0)
    oracle.report('all members agree', `${when}: ${down.map(({ name }) => name).join(', ')} not started`);
  const shape = misshapen(world.store.document ?? '');
  if (shape !== undefined) oracle.report('what is stored is a ring document', `${when}: ${shape}`);
  const different = disagreement(world, members) ?? mutualRefusal(members);
  if (different !== undefined) oracle.report('all members agree', `${when}: ${different}`);
}

/** The result of a request. */
interface Outcome {
  isDone: boolean;
  failure: unknown;
}

/** A request by an operator to a member, repeated if a call was lost. */
async function wished(world: World, oracle: Oracle, member: SimulatedMember, wish: 'revoke' | 'rotate'): Promise<void> {
  const { timeline, options } = world;
  let last: Outcome = { isDone: false, failure: 'it is down' };
  for (let i = 0; i < TRIES && member.codec !== undefined; i++) {
    const { codec } = member;
    const keyId = codec.health().keys.findLast(({ state, held }) => state === 'active' && held)?.id;
    // Nothing is left to revoke.
    if (wish === 'revoke' && keyId === undefined) return;
    const outcome: Outcome = { isDone: false, failure: undefined };
    last = outcome;
    (wish === 'rotate' ? codec.rotate() : codec.revoke(keyId ?? '')).then(
      () => {
        outcome.isDone = true;
        if (wish === 'revoke') oracle.revoked(keyId ?? '');
      },
      (error: unknown) => {
        outcome.failure = error;
        oracle.caught(error, `${member.name}: ${wish}`);
      },
    );
    // An operator waits no longer than the calls may take.
    const until = timeline.nowMs + MINUTE;
    while (timeline.nowMs < until && isPending(outcome)) {
      await timeline.advance(timeline.nowMs + SECOND, options.quantumMs);
    }
    if (outcome.isDone) return;
    await timeline.advance(timeline.nowMs + TRY_AGAIN_MS, options.quantumMs);
  }
  oracle.report('revoke and rotate succeed', `${member.name}: ${wish}: ${String(last.failure)}`);
}

function isPending({ isDone, failure }: Outcome): boolean {
  return !isDone && failure === undefined;
}
