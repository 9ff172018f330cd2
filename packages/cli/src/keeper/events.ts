import type { StatusProblem } from '../ring/status.ts';
import { longTime } from '../terminal/long-time.ts';

/** Reports of a keeper, one line each. They name keys, and contain no secret. */
export type KeeperEvent =
  | { readonly event: 'health'; readonly url: string }
  | {
      readonly event: 'started';
      readonly ring: string;
      readonly store: string;
      readonly sealingKey: string | undefined;
    }
  /**
   * A key was published. `reason` is the reason why the keeper created the key; a key of another member has no reason.
   */
  | {
      readonly event: 'rotation';
      readonly key: string;
      readonly sealsFrom: Date | undefined;
      readonly reason: string | undefined;
    }
  | { readonly event: 'rotation-failed'; readonly reason: string; readonly source: string; readonly kind: string }
  | { readonly event: 'key-version'; readonly provider: string; readonly version: string }
  | { readonly event: 'revocation'; readonly key: string }
  /** The keeper wrote the ring again, because the store had lost a part of it. */
  | { readonly event: 'repair'; readonly keys: number }
  | ({ readonly event: 'problem' } & StatusProblem)
  | { readonly event: 'problem-ended'; readonly kind: string }
  /** `status` of `codec.health()`, or its `lastError`, changed: `kms denied`, `store unavailable`, … */
  | { readonly event: 'status'; readonly status: string; readonly lastError: string | undefined }
  | {
      readonly event: 'done';
      readonly condition: string;
      readonly nextRotation: Date | undefined;
      readonly lastKmsCheck: Date | undefined;
    }
  | { readonly event: 'stopping' };

export type Report = (event: KeeperEvent) => void;

/** An event as a line of text. */
export function textOf(event: KeeperEvent): string {
  switch (event.event) {
    case 'health':
      return `answering probes at ${event.url}/readyz`;
    case 'started':
      return `maintaining ring ${event.ring} in ${event.store}; ${event.sealingKey === undefined ? 'no key seals' : `key ${event.sealingKey} seals`}`;
    case 'rotation':
      return rotationText(event);
    case 'rotation-failed':
      return `could not publish a key (${event.reason}): ${event.source} ${event.kind}`;
    case 'key-version':
      return `the KMS key has a new version: ${event.provider} ${event.version}`;
    case 'revocation':
      return `key ${event.key} was revoked`;
    case 'repair':
      return `wrote the ring again, because the store had lost a part of it: ${event.keys} keys`;
    case 'problem':
      return `problem ${event.kind}: ${event.detail} → ${event.remedy}`;
    case 'problem-ended':
      return `problem ${event.kind}: ended`;
    case 'status':
      return `status ${event.status}${event.lastError === undefined ? '' : `: ${event.lastError}`}`;
    case 'done':
      return doneText(event);
    case 'stopping':
      return 'stopping';
  }
}

function rotationText({ key, sealsFrom, reason }: KeeperEvent & { event: 'rotation' }): string {
  const by = reason === undefined ? 'another member published' : 'published';
  const why = reason === undefined ? '' : ` (${reason})`;
  const from = sealsFrom === undefined ? 'seals now' : `seals from ${longTime(sealsFrom)}`;
  return `${by} key ${key}${why}, which ${from}`;
}

function doneText({ condition, nextRotation, lastKmsCheck }: KeeperEvent & { event: 'done' }): string {
  const check = lastKmsCheck === undefined ? 'no KMS check passed' : `KMS check passed at ${longTime(lastKmsCheck)}`;
  const next = nextRotation === undefined ? '' : `; next rotation at ${longTime(nextRotation)}`;
  return `done: ${condition}; ${check}${next}`;
}
