import type { RingStore } from '@sealring/core';
import { isConflict, storeFailureOf } from '../foreign-error.ts';
import type { SealringProbe } from '../settings/settings.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';
import { readRight, writeRight } from './rights.ts';

type Call = Parameters<NonNullable<RingStore['read']>>[0] & object;

/** What is stored: the document, known to be absent, or not to be had. */
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
      `there is no ring in the store (${ring.kind})`,
      'Found it: sealring init. If there was one, restore it first: a new ring opens no token of the old one.',
    );
    return { kind: 'absent', finding };
  } catch (thrown) {
    return { kind: 'failed', finding: storeFinding(ring, thrown, readRight(ring.kind)) };
  }
}

/**
 * Whether a member may write, without writing: "only if absent" where a ring is must be refused as a conflict, and only
 * who may write is told so. A store that broke that promise would be handed what it holds already.
 */
export async function checkWriteRights(ring: RingStore, document: string, call: Call): Promise<Finding> {
  try {
    await ring.write(document, { ...call, expected: undefined });
  } catch (thrown) {
    if (isConflict(thrown)) return ok('store-write', `the ring may be written, and is not written over (${ring.kind})`);
    return storeFinding(ring, thrown, writeRight(ring.kind));
  }
  return error(
    'store-no-compare',
    `the store wrote over a ring although it was told to write only where there is none (${ring.kind})`,
    'Do not use this store or this gateway in front of it: it has no compare-and-swap. Try it with sealring-conformance ring-store.',
  );
}

/** A whole compare-and-swap in a place beside the ring, which is emptied again. */
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
        `the probe's place is not empty (${ring.kind})`,
        'Name a place of its own for the probe, beside the ring; nothing was written.',
      );
      return { finding: taken, wrote };
    }
    finding = await swaps(ring, call, wrote);
  } catch (thrown) {
    finding = storeFinding(ring, thrown, `${writeRight(ring.kind)}, for the probe's place too`);
  }
  if (wrote.length === 0) return { finding, wrote };
  try {
    await probe.remove();
    wrote.push('removed them');
  } catch (thrown) {
    const name = thrown instanceof Error ? thrown.name : typeof thrown;
    finding = error('probe-left', `the probe could not be removed (${name})`, 'Delete what is in the probe’s place.');
  }
  return { finding, wrote };
}

async function swaps(ring: RingStore, call: Call, wrote: string[]): Promise<Finding> {
  const first = await ring.write('sealring doctor 1', { ...call, expected: undefined });
  wrote.push(`a probe of 17 bytes beside the ring (${ring.kind})`);
  const second = await ring.write('sealring doctor 2', { ...call, expected: first.revision });
  wrote.push('another over it');
  for (const [expected, what] of [
    [undefined, 'only where there is none'],
    [first.revision, 'only over the version before'],
  ] as const) {
    if (await isAccepted(ring, expected, call)) {
      return error(
        'store-no-compare',
        `the store accepted a write that was to be done ${what} (${ring.kind})`,
        'Do not use this store or this gateway in front of it: it has no compare-and-swap.',
      );
    }
  }
  const read = await ring.read(call);
  if (read?.document !== 'sealring doctor 2' || read.revision !== second.revision) {
    return error(
      'store-stale-read',
      `the store does not read what it has just written (${ring.kind})`,
      'Read from the primary, and through no cache.',
    );
  }
  return ok('store-swap', `compare-and-swap works, tried beside the ring (${ring.kind})`);
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

/** What a ring store is by its nature. */
export function checkKind({ kind }: RingStore, role: 'member' | 'reader'): readonly Finding[] {
  if (kind === 'memory') {
    return [
      warning(
        'store-memory',
        'the ring is in the memory of one process: no other server shares it, and a restart loses it',
        'Take a ring store that servers share: S3, DynamoDB, Redis, PostgreSQL, Cloud Storage, Azure Blob or a file.',
      ),
    ];
  }
  if (kind === 'static' && role === 'member') {
    return [
      error(
        'store-read-only',
        'the ring came with the configuration and cannot be written: no member can rotate it',
        "Set role: 'reader', or take a ring store that can be written.",
      ),
    ];
  }
  return [];
}

/** DynamoDB's exceptions and PostgreSQL's SQLSTATEs for a table or a schema that is not there. */
const NO_TABLE: ReadonlySet<string> = new Set([
  'ResourceNotFoundException',
  'ResourceInUseException',
  '42P01',
  '3F000',
]);

function storeFinding(ring: RingStore, thrown: unknown, right: string): Finding {
  const failure = storeFailureOf(thrown);
  if (failure === undefined) {
    return error(
      'store-error',
      `the ring store threw an error of another class (${thrown instanceof Error ? thrown.name : typeof thrown})`,
      'A ring store must throw RingStoreError: try it with sealring-conformance ring-store.',
    );
  }
  const what = `the ring store is ${failure.kind}: ${failure.detail} (${ring.kind})`;
  switch (failure.kind) {
    case 'denied':
      return error(
        'store-denied',
        what,
        `Grant ${right}. Members need to write, readers only to read (role: 'reader').`,
      );
    case 'unavailable':
      if (failure.code !== undefined && NO_TABLE.has(failure.code)) {
        return error(
          'store-no-table',
          what,
          `Make the table as the README of @sealring/${ring.kind} says, or mend its name; for DynamoDB also account and region.`,
        );
      }
      return error(
        'store-unavailable',
        what,
        'Check that host, bucket or table are there under these names, that the server is the primary, and network and credentials.',
      );
    case 'read-only':
      return error('store-read-only', what, "Write to the primary; or set role: 'reader' for servers that only open.");
    case 'too-large':
      return error(
        'store-too-large',
        what,
        'Something else was written in the ring’s place. Members that run write the ring over it; without any: delete it, and sealring import.',
      );
    case 'corrupt':
      return error(
        'store-corrupt',
        what,
        'Something else was written in the ring’s place. Members that run write the ring over it; without any: delete it, and sealring import.',
      );
  }
}

/** Said where a full compare-and-swap could not be tried. */
export function unprobed({ kind }: RingStore): Finding {
  return info(
    'store-swap',
    `a whole compare-and-swap was not tried: no place beside the ring is named (${kind})`,
    'Name one as probe in the configuration file, if the roles have rights to it.',
  );
}
