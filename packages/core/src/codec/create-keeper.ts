import { systemRandom } from '../base/clock.ts';
import type { Closing } from '../base/closing.ts';
import { readKernelEntropy } from '../base/kernel-entropy.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import { KmsCalls } from '../kms/kms-calls.ts';
import { KeyWraps } from '../kms/wraps.ts';
import { Founding } from '../member/founding.ts';
import { RingKeeper } from '../member/keeper.ts';
import { KmsCheck } from '../member/kms-check.ts';
import { Repairs } from '../member/repairs.ts';
import { type DatedService, RingClock } from '../member/ring-clock.ts';
import { RingSync } from '../member/sync.ts';
import { RingView } from '../member/view.ts';
import { RingWriter } from '../member/writer.ts';
import { StoredRingDocument } from '../stores/stored-ring.ts';
import type { CheckedOptions } from './kms-codec-options.ts';

/** Creates the parts of a member; nothing is started yet. */
export function createKeeper(options: CheckedOptions, cache: EnvelopeKeyCache, closing: Closing): RingKeeper {
  const { ringName, ring: store, policy, clock, random, keyWrappers, role } = options;
  const timeoutSeconds = policy.kmsTimeoutSeconds;
  const ringClock = new RingClock(policy, clock);
  const noteDateOf =
    (service: DatedService) =>
    (date: Date): void =>
      ringClock.note(service, date);
  const calls = new KmsCalls({
    ring: ringName,
    clock,
    random,
    timeoutSeconds,
    closing,
    onServiceDate: noteDateOf('kms'),
  });
  const wraps = new KeyWraps({
    ring: ringName,
    wrappers: keyWrappers,
    quorum: options.wrapQuorum,
    trustStore: options.dangerouslyTrustStore,
    calls,
    cache,
    random,
    clock,
  });
  const stored = new StoredRingDocument({
    store,
    ring: ringName,
    clock,
    timeoutSeconds,
    closing,
    onServiceDate: noteDateOf('store'),
  });
  const acceptCreatedFromMs = options.acceptKeysCreatedAfter?.getTime();
  const view = new RingView({ role, policy, ring: ringName, clock, ringClock, cache, acceptCreatedFromMs });
  const configured = {
    ring: ringName,
    policy,
    role,
    create: options.create,
    clock,
    random,
    closing,
    store,
    wrappers: keyWrappers,
    readKernelEntropy: random === systemRandom ? readKernelEntropy : noKernelEntropy,
  };
  const learning = { ...configured, ringClock, stored, view, wraps };
  const sync = new RingSync(learning, new Repairs(learning), new KmsCheck(learning));
  const writer = new RingWriter(learning);
  return new RingKeeper({ ...learning, sync, writer, founding: new Founding({ ...learning, writer }) });
}

/** A codec with its own random source uses no other randomness, so that a run can be repeated. */
async function noKernelEntropy(): Promise<Uint8Array> {
  return new Uint8Array(0);
}
