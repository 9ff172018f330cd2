import type { RingStore } from '@sealring/core';
import { isConflict, storeFailureOf } from '../foreign-error.ts';
import type { SealringProbe } from '../settings/settings.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';
import { readPermission, writePermission } from './permissions.ts';

type Call = Parameters<NonNullable<RingStore['read']>>[0] & object;

/** The result of reading the ring. */
export type StoreRead =
  | { readonly kind: 'held'; readonly document: string; readonly finding: Finding }
  | { readonly kind: 'absent'; readonly finding: Finding }
  | { readonly kind: 'failed'; readonly finding: Finding };

/** Reads the ring. */
export async function checkRead(ring: RingStore, call: Call): Promise<StoreRead> {
  try {
    const stored = await ring.read(call);
    if (stored !== undefined) {
      return {
        kind: 'held',
        document: stored.document,
        finding: ok('store-read', `the ring can be read (${ring.kind})`),
      };
    }
    const finding = warning(
      'store-absent',
      `the store has no ring (${ring.kind})`,
      'Create one: sealring init. If there was one before, restore it instead: a new ring cannot unseal tokens of the old one.',
    );
    return { kind: 'absent', finding };
  } catch (thrown) {
    return { kind: 'failed', finding: storeFinding(ring, thrown, readPermission(ring.kind)) };
  }
}

/**
 * Checks the permission to write without changing the ring: while there is a ring, a write "only if absent" must end in
 * a conflict, and only a caller with permission to write gets that answer. If a store accepts the write nevertheless,
 * it receives the document that it already has.
 */
export async function checkWritePermission(ring: RingStore, document: string, call: Call): Promise<Finding> {
  try {
    await ring.write(document, { ...call, expected: undefined });
  } catch (thrown) {
    if (isConflict(thrown))
      return ok('store-write', `the ring can be written, and a conflicting write is rejected (${ring.kind})`);
    return storeFinding(ring, thrown, writePermission(ring.kind));
  }
  return error(
    'store-no-compare',
    `the store overwrote the ring although the write was conditional on its absence (${ring.kind})`,
    'Do not use this store, or the gateway in front of it: it has no compare-and-swap. Test it with sealring-conformance ring-store.',
  );
}

/** Tests a complete compare-and-swap at the location of the probe, and empties that location. */
export async function checkProbe(
  probe: SealringProbe,
  call: Call,
): Promise<{ readonly finding: Finding; readonly wrote: readonly string[] }> {
  const { ring } = probe;
  const wrote: string[] = [];
  let finding: Finding;
  try {
    if ((await ring.read(call)) !== undefined) {
      const taken = error(
        'probe-taken',
        `the location of the probe is not empty (${ring.kind})`,
        'Nothing was written. Configure an unused location for the probe.',
      );
      return { finding: taken, wrote };
    }
    finding = await swaps(ring, call, wrote);
  } catch (thrown) {
    finding = storeFinding(ring, thrown, `${writePermission(ring.kind)}, also at the location of the probe`);
  }
  if (wrote.length === 0) return { finding, wrote };
  try {
    await probe.remove();
    wrote.push('removed both');
  } catch (thrown) {
    const name = thrown instanceof Error ? thrown.name : typeof thrown;
    finding = error(
      'probe-left',
      `the probe could not be removed (${name})`,
      'Delete the content at the location of the probe.',
    );
  }
  return { finding, wrote };
}

async function swaps(ring: RingStore, call: Call, wrote: string[]): Promise<Finding> {
  const first = await ring.write('sealring doctor 1', { ...call, expected: undefined });
  wrote.push(`a document of 17 bytes to the location of the probe (${ring.kind})`);
  const second = await ring.write('sealring doctor 2', { ...call, expected: first.revision });
  wrote.push('another document in its place');
  for (const [expected, what] of [
    [undefined, 'on the absence of the document'],
    [first.revision, 'on an older version'],
  ] as const) {
    if (await isAccepted(ring, expected, call)) {
      return error(
        'store-no-compare',
        `the store accepted a write that was conditional ${what} (${ring.kind})`,
        'Do not use this store, or the gateway in front of it: it has no compare-and-swap.',
      );
    }
  }
  const read = await ring.read(call);
  if (read?.document !== 'sealring doctor 2' || read.revision !== second.revision) {
    return error(
      'store-stale-read',
      `the store returned an older document than the one that it had just accepted (${ring.kind})`,
      'Read from the primary, not through a cache.',
    );
  }
  return ok('store-swap', `compare-and-swap works at the location of the probe (${ring.kind})`);
}

async function isAccepted(ring: RingStore, expected: string | undefined, call: Call): Promise<boolean> {
  try {
    await ring.write('sealring doctor 3', { ...call, expected });
    return true;
  } catch (thrown) {
    if (isConflict(thrown)) return false;
    throw thrown;
  }
}

/** Checks the kind of the ring store. */
export function checkKind({ kind }: RingStore, role: 'member' | 'reader'): readonly Finding[] {
  if (kind === 'memory') {
    return [
      warning(
        'store-memory',
        'the ring is in the memory of one process: no other server can read it, and a restart loses it',
        'Use a ring store that servers share: S3, DynamoDB, Redis, PostgreSQL, Cloud Storage, Azure Blob, Kubernetes or a file.',
      ),
    ];
  }
  if (kind === 'static' && role === 'member') {
    return [
      error(
        'store-read-only',
        'a static ring cannot be written: no member can rotate it',
        "Set role: 'reader', or use another ring store.",
      ),
    ];
  }
  return [];
}

/** Exceptions of DynamoDB and SQLSTATEs of PostgreSQL for a missing table or schema. */
const NO_TABLE: ReadonlySet<string> = new Set([
  'ResourceNotFoundException',
  'ResourceInUseException',
  '42P01',
  '3F000',
]);

function storeFinding(ring: RingStore, thrown: unknown, permission: string): Finding {
  const failure = storeFailureOf(thrown);
  // A correct store resolves to undefined, instead of rejecting, if there is no ring.
  if (failure === undefined || failure.kind === 'absent') {
    return error(
      'store-error',
      `the ring store threw ${thrown instanceof Error ? thrown.name : typeof thrown} instead of RingStoreError (${ring.kind})`,
      'Correct the ring store, and test it with sealring-conformance ring-store.',
    );
  }
  const what = `the ring store is ${failure.kind}: ${failure.detail} (${ring.kind})`;
  switch (failure.kind) {
    case 'denied':
      return error(
        'store-denied',
        what,
        `Grant ${permission}. Members must write; readers (role: 'reader') only read.`,
      );
    case 'unavailable':
      if (failure.serviceCode !== undefined && NO_TABLE.has(failure.serviceCode)) {
        return error(
          'store-no-table',
          what,
          `Create the table as the README of @sealring/${ring.kind} describes, or correct its name; for DynamoDB, also check the account and the region.`,
        );
      }
      return error(
        'store-unavailable',
        what,
        'Check that the host, bucket or table exists and that the server is the primary, and check the network and the credentials.',
      );
    case 'read-only':
      return error(
        'store-read-only',
        what,
        "Connect to the primary, or set role: 'reader' for servers that only unseal.",
      );
    case 'too-large':
      return error('store-too-large', what, REPLACED);
    case 'corrupt':
      return error('store-corrupt', what, REPLACED);
  }
}

const REPLACED =
  'Another document was written in place of the ring. Running members overwrite it. If none is running, delete it, and run sealring import.';

/** The finding if no probe is configured. */
export function unprobed({ kind }: RingStore): Finding {
  return info(
    'store-swap',
    `a complete compare-and-swap was not tested: no probe is configured (${kind})`,
    'Configure a probe in the configuration file, at a location that the role may write to.',
  );
}
