import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { CodecEvents, CodecHealth, CodecStatus } from '@sealring/core';
import { keyName } from '../ring/key-name.ts';
import { shownProblems } from '../ring/status.ts';
import type { Report } from './events.ts';

/** Reports changes in the health of one codec, and its events. Create it before the codec, so that it misses no event. */
export class HealthLog {
  readonly #report: Report;
  /** The reason why the codec published each key, by the name of the key. */
  readonly #reasons = new Map<string, string>();
  readonly #known = new Set<string>();
  readonly #revoked = new Set<string>();
  readonly #listeners: { readonly [Name in keyof CodecEvents]?: (event: unknown) => void };
  #problems: ReadonlySet<string> = new Set();
  #status: CodecStatus = 'ok';
  #lastError: string | undefined;

  constructor(report: Report) {
    this.#report = report;
    this.#listeners = {
      'sealring:rotation': (event) => {
        const { keyId, reason } = event as CodecEvents['sealring:rotation'];
        this.#reasons.set(keyId, reason);
      },
      'sealring:rotation-failed': (event) => {
        const { reason, source, kind } = event as CodecEvents['sealring:rotation-failed'];
        report({ event: 'rotation-failed', reason, source, kind });
      },
      'sealring:key-version': (event) => {
        const { provider, version } = event as CodecEvents['sealring:key-version'];
        report({ event: 'key-version', provider, version });
      },
      'sealring:healed': (event) => {
        const { keys } = event as CodecEvents['sealring:healed'];
        report({ event: 'repair', keys });
      },
    };
    for (const [name, listener] of Object.entries(this.#listeners)) subscribe(name, listener);
  }

  /** Notes existing keys and revocations, which are not reported. Call this once, when the codec has started. */
  begin(health: CodecHealth): void {
    for (const { id, state } of health.keys) {
      const name = keyName(id);
      if (!this.#reasons.has(name)) this.#known.add(name);
      if (state === 'revoked') this.#revoked.add(name);
    }
    this.observe(health);
  }

  /** Reports the changes since the last call. */
  observe(health: CodecHealth): void {
    this.#observeKeys(health);
    this.#observeProblems(health);
    const { status } = health;
    const lastError = health.lastError && `${health.lastError.source} ${health.lastError.kind}`;
    if (status === this.#status && lastError === this.#lastError) return;
    this.#status = status;
    this.#lastError = lastError;
    this.#report({ event: 'status', status, lastError });
  }

  close(): void {
    for (const [name, listener] of Object.entries(this.#listeners)) unsubscribe(name, listener);
  }

  #observeKeys({ keys }: CodecHealth): void {
    for (const { id, state, activates } of keys) {
      const key = keyName(id);
      if (state === 'revoked') {
        if (!this.#revoked.has(key)) this.#report({ event: 'revocation', key });
        this.#revoked.add(key);
      } else if (!this.#known.has(key)) {
        const sealsFrom = state === 'propagating' ? activates : undefined;
        this.#report({ event: 'rotation', key, sealsFrom, reason: this.#reasons.get(key) });
      }
      this.#known.add(key);
    }
  }

  #observeProblems(health: CodecHealth): void {
    const problems = shownProblems(health);
    for (const problem of problems) {
      if (!this.#problems.has(problem.kind)) this.#report({ event: 'problem', ...problem });
    }
    const kinds = new Set(problems.map(({ kind }) => kind));
    for (const kind of this.#problems) {
      if (!kinds.has(kind)) this.#report({ event: 'problem-ended', kind });
    }
    this.#problems = kinds;
  }
}
