import { hashedKeyId, type KeyHealth } from '@sealring/core';
import type { History, Round } from './history.ts';
import { type MemberHealth, reportOf } from './member.ts';
import type { RingReport } from './ring-report.ts';
import type { Scraped } from './scrape.ts';

/** The data of the page. Key ids are hashed, because a page is easily photographed. */
export interface View extends Omit<RingReport, 'keys' | 'sealingKey'> {
  readonly everySeconds: number;
  readonly keys: readonly ViewKey[];
  readonly members: readonly ViewMember[];
  readonly rounds: readonly Round[];
}

export interface ViewKey extends Pick<KeyHealth, 'state' | 'created' | 'activates' | 'sealsUntil' | 'opensUntil'> {
  readonly hash: string;
  readonly fingerprint: number;
  readonly seals: boolean;
}

export interface ViewMember {
  readonly name: string;
  /** Why the member did not answer. */
  readonly failure: string | undefined;
  readonly health: MemberHealth | undefined;
}

/** The address of a member's metrics, and its answer. */
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

/** Hashes the ids, as the events do. */
function viewKeysOf({ keys, sealingKey }: RingReport): readonly ViewKey[] {
  return keys.map(({ id, state, created, activates, sealsUntil, opensUntil }) => {
    const hash = hashedKeyId(id);
    // The number that members export; see fingerprint in @sealring/otel.
    const fingerprint = Buffer.from(hash, 'base64url').readUIntBE(0, 6);
    return { hash, fingerprint, seals: id === sealingKey, state, created, activates, sealsUntil, opensUntil };
  });
}
