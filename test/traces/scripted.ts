// @boundaries-ignore a thief forges documents with the core's own code
import { DataKey } from '../../packages/core/src/keys/data-key.ts';
// @boundaries-ignore a thief forges documents with the core's own code
import { certificateOf, wrapMacOf } from '../../packages/core/src/ring/certificates.ts';
import { type Document, type Entry, inOrder } from '../simulator/adversary/composer.ts';
import { episodeOptions } from '../simulator/adversary/episode.ts';
import { RING } from '../simulator/thefts.ts';
import { EPOCH_MS } from '../simulator/timeline.ts';
import { HOUR, MINUTE, SECOND, World } from '../simulator/world.ts';
import { TracedMember } from './member.ts';
import type { Line } from './scenes.ts';
import { digest } from './services.ts';
import type { Expected, Scene, Step } from './trace.ts';

const STEADY_MS = 5_000_000;
const PROVIDER = 'simulated';
/** A random word that does not make every backoff the shortest. */
const WORD = 2 ** 31;
const MOST_WRAPS = 16;
const MOST_ENTRIES = 64;

type Make = (step: Omit<Step, 'word'>) => Promise<Expected>;

/** One member of its own ring, in fixed steps that chance would seldom find. */
const SCRIPTS: Readonly<Record<string, (make: Make) => Promise<void>>> = Object.freeze({
  /** The entry of a revoked key comes back after the key's end, and the clock steps. */
  'a revoked key after its end': async (make) => {
    const [revoked] = documentOf(await make({ op: 'start', store: { document: null } })).keys;
    await make({ op: 'advance', argument: HOUR });
    const { id } = present(revoked);
    const current = documentOf(await make({ op: 'revoke', argument: id }));
    const old = { ...current, keys: [revoked, ...current.keys.filter((entry) => entry.id !== id)] };
    for (let passed = 0; passed < 12 * HOUR; passed += HOUR) await make({ op: 'advance', argument: HOUR });
    await make({ op: 'refresh', store: { document: JSON.stringify(old) }, clock: { stepMs: 72 * HOUR } });
    await make({ op: 'advance', argument: 10 * MINUTE });
    await make({ op: 'refresh', clock: { stepMs: -72 * HOUR } });
  },
  /** A thief of a data key fills its entry with wraps, and then with others, one of which was there before. */
  'a thief fills an entry': async (make) => {
    const document = documentOf(await make({ op: 'start', store: { document: null } }));
    const entry = present(document.keys[0]);
    const held = new DataKey(digest(`key/${PROVIDER}/0`), RING);
    const forged = (at: number): Entry['wraps'][number] => {
      const wrap = { provider: PROVIDER, keyId: 'key/9', wrapped: digest(`thief/${at}`) };
      const mac = wrapMacOf(RING, wrap, held.authenticator).toString('base64url');
      return { provider: PROVIDER, keyId: wrap.keyId, wrapped: wrap.wrapped.toString('base64url'), mac };
    };
    const filled = (wraps: Entry['wraps']): string => JSON.stringify({ ...document, keys: [{ ...entry, wraps }] });
    const first = Array.from({ length: MOST_WRAPS - 1 }, (_, at) => forged(at));
    const others = Array.from({ length: MOST_WRAPS - 1 }, (_, at) => forged(MOST_WRAPS + at));
    await make({ op: 'refresh', store: { document: filled([...entry.wraps, ...first]) } });
    await make({ op: 'refresh', store: { document: filled([forged(1), ...others]) } });
    await make({ op: 'advance', argument: 10 * MINUTE });
  },
  /** A thief of an expired data key certifies as many revocations as there is room for, in place of a genuine one. */
  'a thief of an expired key fills the ring': async (make) => {
    const [expired] = documentOf(await make({ op: 'start', store: { document: null } })).keys;
    const held = new DataKey(digest(`key/${PROVIDER}/0`), RING);
    let current: Document | undefined;
    for (let passed = 0; passed < 18 * HOUR; passed += HOUR) {
      const expected = await make({ op: 'advance', argument: HOUR });
      if (expected.writes.length > 0) current = documentOf(expected);
    }
    const revoked = present(current?.keys.at(-1)).id;
    current = documentOf(await make({ op: 'revoke', argument: revoked }));
    const created = Date.parse(present(expired).created);
    const junk = Array.from({ length: MOST_ENTRIES }, (_, at): Entry => {
      const entry = present(current?.keys.at(-1));
      const id = digest(`thief/${at}`).subarray(0, 9).toString('base64url');
      const later = `${new Date(EPOCH_MS + 19 * HOUR).toISOString().slice(0, 19)}Z`;
      const mac = certificateOf(RING, id, Date.parse(later), held.authenticator).toString('base64url');
      const older = `${new Date(created - (at + 1) * SECOND).toISOString().slice(0, 19)}Z`;
      return { ...entry, id, created: older, vouchers: {}, revoked: { at: later, by: { [held.id]: mac } } };
    });
    const keys = [...current.keys.filter(({ id }) => id !== revoked), ...junk].slice(0, MOST_ENTRIES);
    await make({ op: 'refresh', store: { document: JSON.stringify(inOrder({ ...current, keys })) } });
    const restored = documentOf(await make({ op: 'advance', argument: 10 * MINUTE }));
    if (!restored.keys.some(({ id }) => id === revoked))
      throw new Error('the genuine revocation has left the document');
    if (restored.keys.length < MOST_ENTRIES) throw new Error('the document of the thief was not accepted');
  },
});

/** The names of all scripts. */
export const SCRIPTED: readonly string[] = Object.keys(SCRIPTS);

/** The lines of one script. */
export async function scriptedScene(name: string): Promise<readonly Line[]> {
  const scene: Scene = {
    name,
    policy: { ...new World(episodeOptions(1)).policy },
    create: 'now',
    providers: [PROVIDER],
    wrapQuorum: null,
    keyVersions: false,
    acceptKeysCreatedAfterMs: null,
    wallMs: EPOCH_MS,
    steadyMs: STEADY_MS,
    trueAheadMs: EPOCH_MS - STEADY_MS,
  };
  const lines: Line[] = [{ scene: { ...scene }, keys: [] }];
  const member = new TracedMember(scene, []);
  try {
    await SCRIPTS[name]?.(async (asked) => {
      const step: Step = { word: WORD, ...asked };
      const expected = await member.step(step);
      lines.push({ ...step, expected });
      return expected;
    });
  } finally {
    await member.close();
  }
  return lines;
}

/** The last write of a step. */
function documentOf({ writes }: Expected): Document {
  return JSON.parse(present(writes.at(-1)).document) as Document;
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a script of a trace has nothing to go on with');
  return value;
}
