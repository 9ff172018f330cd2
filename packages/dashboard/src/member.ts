import type { Sample } from './prometheus-text.ts';
import type { Scraped } from './scrape.ts';

/** What one member publishes through `@sealring/otel`, at one moment. */
export interface MemberReport {
  /** Undefined while it does not answer, or publishes nothing of this ring. */
  readonly health: MemberHealth | undefined;
  readonly counts: MemberCounts;
}

export interface MemberHealth {
  readonly status: string;
  readonly ready: boolean;
  readonly canSeal: boolean;
  readonly canOpen: boolean;
  /** Seconds. */
  readonly sealRemaining: number;
  readonly proofAge: number;
  /** See `sealring.ring.sealing_key.fingerprint`; 0 for none. */
  readonly fingerprint: number;
  /** Kinds of what needs an operator there. */
  readonly problems: readonly string[];
}

/** Counters since the process began: of all its rings together. */
export interface MemberCounts {
  readonly sealed: number;
  readonly opened: number;
  readonly refused: ReadonlyMap<string, number>;
  readonly rejected: ReadonlyMap<string, number>;
}

export function reportOf(scraped: Scraped, ring: string): MemberReport {
  const samples = 'samples' in scraped ? scraped.samples : [];
  return {
    health: healthOf(samples.filter(({ labels }) => labels.get('sealring_ring_name') === ring)),
    counts: {
      sealed: sum(named(samples, 'sealring_boundary_sealed_tokens_total')),
      opened: sum(named(samples, 'sealring_boundary_opened_tokens_total')),
      refused: byReason(named(samples, 'sealring_boundary_refused_tokens_total')),
      rejected: byReason(named(samples, 'sealring_codec_rejected_tokens_total')),
    },
  };
}

function healthOf(own: readonly Sample[]): MemberHealth | undefined {
  const status = named(own, 'sealring_codec_status')
    .find(({ value }) => value === 1)
    ?.labels.get('sealring_status');
  if (status === undefined) return undefined;
  const gauge = (name: string): number => named(own, name)[0]?.value ?? 0;
  return {
    status,
    ready: gauge('sealring_codec_ready') === 1,
    canSeal: gauge('sealring_codec_can_seal') === 1,
    canOpen: gauge('sealring_codec_can_open') === 1,
    sealRemaining: gauge('sealring_codec_seal_remaining'),
    proofAge: gauge('sealring_codec_proof_age'),
    fingerprint: gauge('sealring_ring_sealing_key_fingerprint'),
    problems: problemsIn(own),
  };
}

/** Kinds that can be told apart; the exporters of our own have fewer. */
const MAX_PROBLEMS = 16;

function problemsIn(own: readonly Sample[]): readonly string[] {
  const present = named(own, 'sealring_codec_problem').filter(({ value }) => value === 1);
  return present.slice(0, MAX_PROBLEMS).map(({ labels }) => (labels.get('sealring_problem_kind') ?? '').slice(0, 40));
}

function named(samples: readonly Sample[], name: string): readonly Sample[] {
  return samples.filter((sample) => sample.name === name);
}

function sum(samples: readonly Sample[]): number {
  return samples.reduce((total, { value }) => total + value, 0);
}

/** Reasons that can be told apart; the exporters of our own have fewer. */
const MAX_REASONS = 32;

function byReason(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { labels, value } of samples) {
    const reason = (labels.get('sealring_reject_reason') ?? '').slice(0, 40);
    if (counts.has(reason) || counts.size < MAX_REASONS) counts.set(reason, (counts.get(reason) ?? 0) + value);
  }
  return counts;
}
