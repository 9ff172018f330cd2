import { type Checks, expectThat } from '../requirement.ts';
import type { SingleUseStoreLike } from './target.ts';
import { CLAIMS, LONGEST_ID, type SingleUseTrial, soon } from './trial.ts';

/** Lifetimes in seconds: a month, longer than 2^31 ms, and 30 years, which end later than 2^31 s after 1970. */
const FAR_SECONDS: readonly number[] = [31 * 86_400, 30 * 365 * 86_400];
const STORES = 4;
const ROUNDS = 10;
/** Minimum number of ids that a store must hold. It may refuse further ids, but must not forget any id. */
const LEAST_ROOM = 1_000;
const MANY = 12_000;
const MANY_MS = 3_000;

export const CLAIM_CHECKS: Checks<SingleUseTrial> = {
  'USE-ANSWER': async (trial) => {
    const store = await trial.open();
    const id = trial.freshId();
    expectThat(await trial.claim(store, id, 600), 'the first claim of an id resolved to false');
    await trial.claim(store, id, 600);
    await trial.claim(store, trial.freshId(), -86_400 - trial.clockSkewSeconds);
  },
  'USE-ONE-WINNER': async (trial) => {
    const stores = await Promise.all(Array.from({ length: STORES }, () => trial.open()));
    for (let round = 0; round < ROUNDS; round++) {
      const id = trial.freshId();
      const claims = Array.from({ length: CLAIMS / STORES }, () => stores.map((store) => trial.claim(store, id, 600)));
      const won = (await Promise.all(claims.flat())).filter(Boolean).length;
      expectThat(won === 1, `of ${CLAIMS} concurrent claims, ${won} resolved to true`);
    }
  },
  'USE-ONCE': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const id = trial.freshId();
    expectThat(await trial.claim(store, id, 600), 'the first claim of an id resolved to false');
    for (const seconds of [600, 60, 6_000]) {
      for (const again of [store, other]) {
        const won = await trial.claim(again, id, seconds);
        expectThat(!won, `an id that expires in 600 s was claimed again, this time to expire in ${seconds} s`);
      }
    }
    for (const seconds of FAR_SECONDS) {
      const far = trial.freshId();
      expectThat(await trial.claim(store, far, seconds), `an id that expires in ${seconds} s was refused`);
      expectThat(!(await trial.claim(other, far, seconds)), `an id that expires in ${seconds} s was claimed again`);
    }
    const [kept, date] = [trial.freshId(), soon()];
    await trial.promised(() => store.claim(kept, date), 'a claim');
    date.setTime(0);
    for (const again of [store, other]) {
      expectThat(
        !(await trial.claim(again, kept, 600)),
        'an id was claimed again after the caller had changed the Date of its claim',
      );
    }
  },
  'USE-MANY': async (trial) => {
    const stores = [await trial.open(), await trial.open()];
    const claimed: string[] = [];
    const until = performance.now() + MANY_MS;
    let isFull = false;
    while (claimed.length < MANY && performance.now() < until && !isFull) {
      const ids = Array.from({ length: 2 * CLAIMS }, () => trial.freshId());
      const hasRoom = claimed.length >= LEAST_ROOM;
      const claims = ids.map(async (id, i) => {
        const claim = trial.claim(stores[i % 2] as SingleUseStoreLike, id, 600);
        // A full store may resolve to false or reject.
        return hasRoom ? claim.catch(() => false) : claim;
      });
      const won = await trial.all(claims);
      isFull = won.includes(false);
      expectThat(!isFull || hasRoom, `an unclaimed id was refused after ${claimed.length} others`);
      claimed.push(...ids.filter((_, i) => won[i]));
    }
    const step = Math.ceil(claimed.length / (5 * CLAIMS));
    for (const ids of batches(claimed.filter((_, i) => i % step === 0 || i < CLAIMS))) {
      const again = ids.map((id, i) => trial.claim(stores[i % 2] as SingleUseStoreLike, id, 600).catch(() => false));
      const won = (await trial.all(again)).filter(Boolean).length;
      expectThat(won === 0, `after ${claimed.length} ids had been claimed, ${won} of ${ids.length} were claimed again`);
    }
    return `${claimed.length} ids were claimed`;
  },
  'USE-SEPARATE': async (trial) => {
    const store = await trial.open();
    const id = `Aa${trial.freshId().slice(2)}`;
    const number = `7${trial.random.below(2 ** 31)}`;
    const long = id.padEnd(LONGEST_ID, 'x');
    const half = Math.floor(id.length / 2);
    const alike = [
      id,
      `aA${id.slice(2)}`,
      `${id.slice(0, -1)}${id.endsWith('-') ? '_' : '-'}`,
      id.slice(0, -1),
      id.slice(1),
      `${id.slice(0, half)}${id.charAt(half) === 'x' ? 'y' : 'x'}${id.slice(half + 1)}`,
      ...ALIKE.flatMap((more) => [id + more, more + id, id.slice(0, half) + more + id.slice(half)]),
      Array.from(id).toReversed().join(''),
      number,
      ...['0', '+', '0x'].map((sign) => sign + number),
      ...['.0', 'e0'].map((end) => number + end),
      ...['1', '2', '\u4e2d', '\u6587'].map((end) => long.slice(0, -1) + end),
      id + '\u4e2d'.repeat(LONGEST_ID - id.length),
    ];
    for (const some of batches(alike)) {
      const won = await trial.all(some.map((one) => trial.claim(store, one, 600)));
      const refused = some[won.indexOf(false)] ?? '';
      expectThat(!won.includes(false), `${JSON.stringify(refused)} was refused because of similar ids`);
    }
    // Some services cannot store these ids. An error is allowed, but confusing one id with another is not.
    for (const more of ['\0', '\0x', '\ud800', '\udc00', '\ufffd']) {
      const outcome = await trial.promised(() => store.claim(id + more, soon()), 'a claim');
      const isTaken = 'value' in outcome && outcome.value !== true;
      expectThat(!isTaken, `an id that ends in ${JSON.stringify(more)} was confused with the id without it`);
    }
    await namesOfMembers(trial, store);
  },
};

/**
 * Characters that a database, URL, path, pattern or collation drops, confuses with others, or treats as the end of a
 * text.
 */
const ALIKE: readonly string[] = [
  ...'- _ . : / \\ + % * ? # & = , ; | ~ A a 0 \' " ` ( [ { < @ ! $ ^'.split(' '),
  '%41',
  ...Array.from(' \t\n\u00a0\u200b\u00ad\ufeff'),
  ...'e é e\u0301 E\u0301 ss ß ﬁ fi Ａ А i ı １ 1 Ā Ă 中 文 🙂 🙃'.split(' '),
  // Texts with equal 32-bit hashes, as computed by Java's String.hashCode and by CRC-32.
  ...'Aa BB Ab BA plumless buckeroo'.split(' '),
];

function batches(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / CLAIMS) }, (_, i) => ids.slice(i * CLAIMS, (i + 1) * CLAIMS));
}

/**
 * Expects that an id is unclaimed even if every JavaScript object has a member of that name. An earlier run may have
 * claimed these ids, so the check first claims other fixed ids, which expire later. If it can claim all of those, it
 * must also be able to claim these.
 */
async function namesOfMembers(trial: SingleUseTrial, store: SingleUseStoreLike): Promise<void> {
  for (const name of ['constructors', 'to-string', 'conformance']) {
    if (!(await trial.claim(store, name, 60))) return;
  }
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'then']) {
    expectThat(await trial.claim(store, name, 30), `the id ${name} was refused although it was unclaimed`);
  }
}
