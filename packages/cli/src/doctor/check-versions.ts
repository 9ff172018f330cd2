import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { type ResolvedPolicy, type RingDocument, type RingEntry, rotateAt } from '@sealring/core/ring';
import { type KmsFailure, kmsFailuresOf, kmsLineOf } from '../foreign-error.ts';
import { error, type Finding, ok, warning } from './finding.ts';
import { kmsFinding } from './kms-findings.ts';

/** The KMS key version that a key wrapper uses now: the `keyId` of a wrap that was just made. */
export interface CurrentVersion {
  readonly wrapper: KeyWrapper;
  readonly keyId: string;
}

/** Whether a wrap in the ring belongs to a key wrapper. */
export function isOwn(
  wrapper: KeyWrapper,
  { provider, keyId }: { readonly provider: string; readonly keyId: string },
): boolean {
  const wrap: WrappedKey = { provider, keyId, wrapped: new Uint8Array(1) };
  return provider === wrapper.provider && wrapper.owns?.(wrap) !== false;
}

/** Checks that the current KMS key version wraps the newest key of the ring, and lists how long older versions are needed. */
export function checkVersion(
  { wrapper, keyId: current }: CurrentVersion,
  ring: RingDocument,
  live: readonly RingEntry[],
  times: ResolvedPolicy,
): readonly Finding[] {
  const versionOf = ({ wraps }: RingEntry): string | undefined => wraps.find((wrap) => isOwn(wrapper, wrap))?.keyId;
  const neededUntil = new Map<string, number>();
  for (const key of live) {
    const version = versionOf(key);
    if (version === undefined) continue;
    neededUntil.set(version, Math.max(neededUntil.get(version) ?? 0, key.opensUntil));
  }
  const newest = live.findLast((key) => versionOf(key) !== undefined);
  if (newest === undefined) return [];
  const others = [...neededUntil].filter(([version]) => version !== current);
  const needed = others.map(([version, ms]) => `${version} until ${timeOf(ms)}`).join(', ');
  const last = versionOf(newest);
  if (last === current) {
    const more = needed === '' ? '' : `; older versions are still needed: ${needed}`;
    return [ok('kms-version', `the newest key of the ring is wrapped by the current version ${current}${more}`)];
  }
  const due = timeOf(rotateAt(newest, times));
  const isKnown = ring.entries.some(({ wraps }) =>
    wraps.some((wrap) => isOwn(wrapper, wrap) && wrap.keyId === current),
  );
  return [
    warning(
      'kms-version',
      `${wrapper.provider} now wraps with version ${current}, but the newest key of the ring is wrapped by ${last}`,
      `${whatMembersDo(isKnown, times.keyVersionEverySeconds, due)} To rotate now, run sealring rotate. Do not disable or destroy versions that are still needed: ${needed}.`,
    ),
  ];
}

function whatMembersDo(isKnown: boolean, everySeconds: number, due: string): string {
  if (isKnown) {
    return `This version already wraps another key of the ring, so no member rotates for it: the rotation due at ${due} will use it.`;
  }
  return everySeconds === 0
    ? `No member checks for new versions (keyVersionEverySeconds is 0): the rotation due at ${due} will use the new one.`
    : `A running member notices the new version and rotates; each member checks every ${everySeconds} s (keyVersionEverySeconds).`;
}

/** Records every unwrap that failed. */
export class UnwrapRecorder {
  /** Keyed by the wrapped bytes. */
  readonly #failures = new Map<string, KmsFailure>();

  /** The same key wrapper, whose failed unwraps are recorded. Closing it does not close the original. */
  on(wrapper: KeyWrapper): KeyWrapper {
    const { provider, keyId, supports } = wrapper;
    const [owns, verify] = [wrapper.owns?.bind(wrapper), wrapper.verify?.bind(wrapper)];
    return {
      provider,
      keyId,
      supports,
      wrap: (dataKey, options) => wrapper.wrap(dataKey, options),
      unwrap: async (wrapped, options) => {
        try {
          return await wrapper.unwrap(wrapped, options);
        } catch (thrown) {
          const [failure] = kmsFailuresOf(thrown);
          if (failure !== undefined) this.#failures.set(textOf(wrapped), failure);
          throw thrown;
        }
      },
      ...(owns !== undefined && { owns }),
      ...(verify !== undefined && { verify }),
    };
  }

  /** Why the KMS refused to unwrap a key; undefined if it did not refuse, or if the wrap is corrupt. */
  refusalOf({ wraps }: RingEntry): Refusal | undefined {
    for (const wrap of wraps) {
      const failure = this.#failures.get(textOf(wrap));
      if (failure !== undefined && failure.kind !== 'corrupt') return { failure, version: wrap.keyId };
    }
    return undefined;
  }
}

/** The wrapped bytes as text. */
function textOf({ wrapped }: WrappedKey): string {
  return Buffer.from(wrapped).toString('base64url');
}

interface Refusal {
  readonly failure: KmsFailure;
  readonly version: string;
}

/** The findings for live keys that the KMS did not unwrap: it refused their KMS key version, or did not answer. */
export function refusedVersions(keys: readonly RingEntry[], recorder: UnwrapRecorder): readonly Finding[] {
  const byVersion = new Map<string, { readonly failure: KmsFailure; readonly keys: RingEntry[] }>();
  for (const key of keys) {
    const refusal = recorder.refusalOf(key);
    if (refusal === undefined) continue;
    const { failure, version } = refusal;
    const entry = byVersion.get(version) ?? { failure, keys: [] };
    entry.keys.push(key);
    byVersion.set(version, entry);
  }
  return [...byVersion].map(([version, { failure, keys: wrapped }]) => {
    if (failure.kind !== 'disabled' && failure.kind !== 'not-found') return kmsFinding(failure, version);
    const until = timeOf(Math.max(...wrapped.map(({ opensUntil }) => opensUntil)));
    const many = wrapped.length === 1 ? '1 live key of the ring is' : `${wrapped.length} live keys of the ring are`;
    return error(
      'kms-version-refused',
      `${many} wrapped by a KMS key version that cannot be used: ${kmsLineOf(failure)} (key ${version})`,
      `${versionRemedy(failure.provider)} The version is needed until ${until}: without it, newly started servers reject the tokens of these keys. A destroyed version cannot be restored, and its tokens are lost.`,
    );
  });
}

function versionRemedy(provider: string): string {
  switch (provider) {
    case 'gcp-kms':
      return 'Enable the version: gcloud kms keys versions enable (or restore, if its destruction is scheduled).';
    case 'azure-key-vault':
      return 'Enable the version: az keyvault key set-attributes --id <version> --enabled true.';
    case 'vault-transit':
      return "Lower the transit key's min_decryption_version to that version or below.";
    default:
      return 'Enable the version again.';
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
