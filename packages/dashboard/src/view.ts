import { hashedKeyId, type KeyHealth } from '@sealring/core';
import type { History, Round } from './history.ts';
import { type KeyPhases, keyFingerprint, keyPhases } from './key-phases.ts';
import { type MemberHealth, reportOf } from './member.ts';
import type { RingReport } from './ring-report.ts';
import type { Scraped } from './scrape.ts';

/** The data of the page. Key ids are hashed, because someone may photograph or share the page. */
export interface View extends Omit<RingReport, 'keys' | 'sealingKey'> {
  readonly everySeconds: number;
  readonly keys: readonly ViewKey[];
  readonly members: readonly ViewMember[];
  readonly rounds: readonly Round[];
}

export interface ViewKey extends Pick<KeyHealth, 'state' | 'activates' | 'sealsUntil'> {
  readonly hash: string;
  readonly fingerprint: number;
  readonly seals: boolean;
  readonly phases: KeyPhases;
}

export interface ViewMember {
  readonly name: string;
  /** Why the member did not answer. */
  readonly failure: string | undefined;
  readonly health: MemberHealth | undefined;
}

/** The address of a member's metrics, and the answer to the request for them. */
export interface AskedMember {
  readonly url: URL;
  readonly answer: Scraped;
}

/** Builds the view of one round, and adds the round to `history`. */
export function viewOf(
  ring: RingReport,
  asked: readonly AskedMember[],
  { history, everySeconds }: { readonly history: History; readonly everySeconds: number },
): View {
  const members = asked.map(({ url, answer }) => ({
    name: `${url.host}${url.pathname}`.replace(/\/$/, ''),
    answer,
    report: reportOf(answer, ring.ring),
  }));
  const answered = members.filter(({ answer }) => 'samples' in answer);
  history.add(performance.now(), new Map(answered.map(({ name, report }) => [name, report.counts])));
  const { keys: _, sealingKey: _sealing, ...facts } = ring;
  return {
    ...facts,
    everySeconds,
    keys: viewKeysOf(ring),
    members: members.map(({ name, answer, report }) => ({
      name,
      failure: 'failure' in answer ? answer.failure : undefined,
      health: report.health,
    })),
    rounds: history.rounds,
  };
}

/** Hashes the key ids in the same way as events do. */
function viewKeysOf({ keys, sealingKey, at }: RingReport): readonly ViewKey[] {
  const phases = keyPhases(keys, at);
  return keys.flatMap(({ id, state, activates, sealsUntil }, index) => {
    const own = phases[index];
    if (own === undefined) return [];
    const facts = { state, activates, sealsUntil, phases: own };
    return [{ hash: hashedKeyId(id), fingerprint: keyFingerprint(id), seals: id === sealingKey, ...facts }];
  });
}
