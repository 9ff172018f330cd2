import {
  CODEC_REQUIREMENTS,
  type ConformanceReport,
  type ConformanceResult,
  KEY_WRAPPER_REQUIREMENTS,
  type Requirement,
  RING_STORE_REQUIREMENTS,
  runCodecConformance,
  runKeyWrapperConformance,
  runRingStoreConformance,
  runSingleUseConformance,
  SINGLE_USE_REQUIREMENTS,
  type SuiteName,
} from '../../src/index.ts';
import { acmeTarget } from './acme.ts';
import { ACME_BROKEN } from './acme-broken.ts';
import { ACME_CAUGHT_BY } from './acme-caught-by.ts';
import { ACME_SOUND } from './acme-sound.ts';
import { BROKEN_CODECS } from './broken-codecs.ts';
import { BROKEN_KEY_WRAPPERS } from './broken-key-wrappers.ts';
import { BROKEN_RING_STORES } from './broken-ring-stores.ts';
import { ODD_RING_STORES } from './odd-ring-stores.ts';
import { BROKEN_SINGLE_USE, zooSingleUse } from './single-use-stores.ts';
import { SOUND_CODECS } from './sound-codecs.ts';
import { SOUND_KEY_WRAPPERS } from './sound-key-wrappers.ts';
import { bucket, file, log, memory, sqlite } from './sound-ring-stores.ts';
import { VENDOR_RING_STORES } from './vendor-ring-stores.ts';

type Status = ConformanceResult['status'];

/** One target of the zoo. */
export interface Animal {
  readonly name: string;
  /** The requirement that must catch it; none for a sound one. */
  readonly caughtBy?: string;
  /** Warnings that a sound one may cause. */
  readonly warnings: readonly string[];
  run(seed: number): Promise<ConformanceReport>;
}

/** All targets of one kind, and their requirements. */
export interface House {
  readonly kind: SuiteName;
  readonly requirements: readonly Requirement[];
  readonly animals: readonly Animal[];
}

/** The result of one target. */
export interface Row {
  readonly animal: Animal;
  readonly statuses: ReadonlyMap<string, Status>;
  /** Deviations from the expected result. */
  readonly wrong: readonly string[];
}

/** Contests of a ring store: fewer than by default, but enough for every fault here. */
const ROUNDS = 20;

const SOUND_RING_STORES = [memory, file, sqlite, bucket, log];

export const HOUSES: readonly House[] = [
  {
    kind: 'codec',
    requirements: CODEC_REQUIREMENTS,
    animals: [
      ...SOUND_CODECS.map(({ target, warnings }) =>
        animalOf(target.name, (seed) => runCodecConformance(target, { seed }), undefined, warnings),
      ),
      ...BROKEN_CODECS.map(({ target, caughtBy }) =>
        animalOf(target.name, (seed) => runCodecConformance(target, { seed }), caughtBy),
      ),
    ],
  },
  {
    kind: 'key-wrapper',
    requirements: KEY_WRAPPER_REQUIREMENTS,
    animals: [
      ...SOUND_KEY_WRAPPERS.map(({ target, warnings }) =>
        animalOf(target.name, (seed) => runKeyWrapperConformance(target, { seed }), undefined, warnings),
      ),
      ...ACME_SOUND.map((target) => animalOf(target.name, (seed) => runKeyWrapperConformance(target, { seed }))),
      ...Object.entries(ACME_BROKEN).map(([name, make]) =>
        animalOf(
          name,
          (seed) => runKeyWrapperConformance(acmeTarget(name, make), { seed, timeoutMs: 2_000 }),
          ACME_CAUGHT_BY[name],
        ),
      ),
      ...BROKEN_KEY_WRAPPERS.map(({ target, caughtBy, hangs }) =>
        // Several requirements wait for a call that never ends.
        animalOf(
          target.name,
          (seed) => runKeyWrapperConformance(target, { seed, ...(hangs && { timeoutMs: 500 }) }),
          caughtBy,
        ),
      ),
    ],
  },
  {
    kind: 'ring-store',
    requirements: RING_STORE_REQUIREMENTS,
    animals: [
      ...SOUND_RING_STORES.map((make) => {
        const store = make();
        const { target } = store;
        process.on('exit', () => store.end());
        return animalOf(target.name, (seed) => runRingStoreConformance(target, { seed, rounds: ROUNDS }));
      }),
      ...ODD_RING_STORES.map((target) =>
        animalOf(target.name, (seed) => runRingStoreConformance(target, { seed, rounds: ROUNDS })),
      ),
      ...[...BROKEN_RING_STORES, ...VENDOR_RING_STORES].map(({ target, caughtBy }) =>
        animalOf(
          target.name,
          (seed) => runRingStoreConformance(target, { seed, rounds: ROUNDS, timeoutMs: 20_000 }),
          caughtBy,
        ),
      ),
    ],
  },
  {
    kind: 'single-use',
    requirements: SINGLE_USE_REQUIREMENTS,
    animals: [
      animalOf('sound', (seed) => runSingleUseConformance(zooSingleUse('sound'), { seed })),
      ...BROKEN_SINGLE_USE.map(({ target, caughtBy }) =>
        animalOf(target.name, (seed) => runSingleUseConformance(target, { seed }), caughtBy),
      ),
    ],
  },
];

function animalOf(
  name: string,
  run: (seed: number) => Promise<ConformanceReport>,
  caughtBy?: string,
  warnings: readonly string[] = [],
): Animal {
  return { name, run, warnings, ...(caughtBy !== undefined && { caughtBy }) };
}

/** Runs the whole suite on one target and compares the result with the expected one. */
export async function tryAnimal(animal: Animal, seed: number): Promise<Row> {
  const { results } = await animal.run(seed);
  const statuses = new Map(results.map(({ id, status }) => [id, status]));
  const complaints = results.filter(({ status }) => status === 'fail' || status === 'warn');
  const { caughtBy } = animal;
  if (caughtBy !== undefined) {
    const isCaught = complaints.some(({ id }) => id === caughtBy);
    return { animal, statuses, wrong: isCaught ? [] : [`${caughtBy} did not catch it (seed ${seed})`] };
  }
  const wrong = complaints
    .filter(({ id, status }) => status === 'fail' || !animal.warnings.includes(id))
    .map(({ id, status, detail }) => `${status} ${id}: ${detail ?? ''}`);
  return { animal, statuses, wrong };
}
