import type { Sample } from './prometheus-text.ts';
import type { Scraped } from './scrape.ts';

/** The metrics of one member at one moment, as `@sealring/otel` exports them. */
export interface MemberReport {
  /** Undefined if the member does not answer, or exports no metrics of this ring. */
  readonly health: MemberHealth | undefined;
  readonly counts: MemberCounts;
}

export interface MemberHealth {
  readonly status: string;
  readonly ready: boolean;
  readonly canSeal: boolean;
  readonly canUnseal: boolean;
  /** Seconds. */
  readonly sealRemaining: number;
  /** Seconds; undefined if the metric is not exported, since 0 would mean that a check has just passed. */
  readonly kmsCheckAge: number | undefined;
  /** The metric `sealring.ring.sealing_key.fingerprint`; 0 for no key. */
  readonly fingerprint: number;
  /** Kinds of problems that need an operator. */
  readonly problems: readonly string[];
}

/** Counters since the process started. The counters of the boundary are summed over all rings of the process. */
export interface MemberCounts {
  readonly sealed: number;
  readonly unsealed: number;
  readonly refused: ReadonlyMap<string, number>;
  readonly rejected: ReadonlyMap<string, number>;
}

export function reportOf(scraped: Scraped, ring: string): MemberReport {
  const samples = 'samples' in scraped ? scraped.samples : [];
  const own = samples.filter(({ labels }) => labels.get('sealring_ring_name') === ring);
  return {
    health: healthOf(own),
    counts: {
      sealed: sum(named(samples, 'sealring_boundary_sealed_tokens_total')),
      unsealed: sum(named(samples, 'sealring_boundary_unsealed_tokens_total')),
      refused: byReason(named(samples, 'sealring_boundary_refused_tokens_total')),
      rejected: byReason(named(own, 'sealring_codec_rejected_tokens_total')),
    },
  };
}

function healthOf(own: readonly Sample[]): MemberHealth | undefined {
  const status = named(own, 'sealring_codec_status')
    .find(({ value }) => value === 1)
    ?.labels.get('sealring_status');
  if (status === undefined) return undefined;
  const exported = (name: string): number | undefined => named(own, name)[0]?.value;
  const gauge = (name: string): number => exported(name) ?? 0;
  return {
    status,
    ready: gauge('sealring_codec_ready') === 1,
    canSeal: gauge('sealring_codec_can_seal') === 1,
    canUnseal: gauge('sealring_codec_can_unseal') === 1,
    sealRemaining: gauge('sealring_codec_seal_remaining'),
    kmsCheckAge: exported('sealring_codec_kms_check_age'),
    fingerprint: gauge('sealring_ring_sealing_key_fingerprint'),
    problems: problemsIn(own),
  };
}

/** Maximum number of kinds of problems to show; the bridge exports fewer. */
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

/** Maximum number of reasons to count; the bridge exports fewer. */
const MAX_REASONS = 32;

function byReason(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { labels, value } of samples) {
    const reason = (labels.get('sealring_reject_reason') ?? '').slice(0, 40);
    if (counts.has(reason) || counts.size < MAX_REASONS) counts.set(reason, (counts.get(reason) ?? 0) + value);
  }
  return counts;
}
