import { assert, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { History } from '../src/history.ts';
import { html } from '../src/html.ts';
import type { MemberCounts } from '../src/member.ts';
import { readSamples } from '../src/prometheus-text.ts';
import { rate, span } from '../src/words.ts';

describe('readSamples', () => {
  test('reads a page sample by sample, and skips lines that it cannot parse', () => {
    const page = `# HELP sealring_a Something
sealring_a 1
sealring_b{x="1",y="a \\"b\\" \\\\ \\n c"} 2.5e3 1700000000
sealring_c{x=1} 3
sealring_d{x="1"
sealring_e NaN
sealring_e +Inf
sealring_e 1.7e308
sealring_e -9007199254740992
other_f 4
sealring_g{} 5
sealring_h -9007199254740991
`;
    expect(readSamples(page).map(({ name, labels, value }) => [name, Object.fromEntries(labels), value])).toEqual([
      ['sealring_a', {}, 1],
      ['sealring_b', { x: '1', y: 'a "b" \\ \n c' }, 2_500],
      ['sealring_g', {}, 5],
      ['sealring_h', {}, -9_007_199_254_740_991],
    ]);
  });

  test('accepts a page of any content and any length', () => {
    assert(
      property(string(), string(), string(), (a, b, c) => {
        readSamples(a);
        readSamples(`sealring_x{${a}="${b}"} ${c}\n`);
      }),
    );
    expect(readSamples('sealring_a 1\n'.repeat(20_000))).toHaveLength(5_000);
    expect(readSamples(`sealring_a{x="${'y'.repeat(10_000)}"} 1`)).toEqual([]);
    expect(readSamples(`sealring_a{${'x="y",'.repeat(600)}} 1`)).toHaveLength(1);
    const lineOf = (length: number): string => `sealring_a{x="${'y'.repeat(length - 18)}"} 1`;
    expect(lineOf(100)).toHaveLength(100);
    expect([4_096, 4_097].map((length) => readSamples(lineOf(length)).length)).toEqual([1, 0]);
  });
});

describe('the history of rounds', () => {
  const counts = (sealed: number, refused: Readonly<Record<string, number>> = {}): MemberCounts => ({
    sealed,
    unsealed: 2 * sealed,
    refused: new Map(Object.entries(refused)),
    rejected: new Map(Object.entries(refused).map(([reason, count]) => [reason, 3 * count])),
  });

  test('counts what all members added since the last round, and nothing from before the first round', () => {
    const history = new History();
    history.add(0, new Map([['a', counts(1_000, { seal: 7 })]]));
    history.add(
      5_000,
      new Map([
        ['a', counts(1_010, { seal: 9, expired: 1 })],
        ['b', counts(500)],
      ]),
    );
    history.add(
      10_000,
      new Map([
        ['a', counts(1_010, { seal: 9, expired: 1 })],
        ['b', counts(503)],
      ]),
    );
    expect(
      history.rounds.map(({ seconds, sealed, unsealed, refused, rejected }) => [
        seconds,
        sealed,
        unsealed,
        Object.fromEntries(refused),
        Object.fromEntries(rejected),
      ]),
    ).toEqual([
      [5, 10, 20, { seal: 2, expired: 1 }, { seal: 6, expired: 3 }],
      [5, 3, 6, {}, {}],
    ]);
  });

  test('counts nothing negative and nothing twice for a member that restarted or did not answer', () => {
    const history = new History();
    history.add(0, new Map([['a', counts(1_000)]]));
    history.add(1_000, new Map());
    history.add(2_000, new Map([['a', counts(1_004)]]));
    history.add(3_000, new Map([['a', counts(2)]]));
    expect(history.rounds.map(({ sealed }) => sealed)).toEqual([0, 4, 2]);
  });

  test('a round without a duration is not counted, and the next round counts from the end of that round', () => {
    const history = new History();
    for (const [atMs, sealed] of [
      [1_000, 1],
      [1_000, 5],
      [500, 7],
      [1_500, 8],
    ] as const) {
      history.add(atMs, new Map([['a', counts(sealed)]]));
    }
    expect(history.rounds.map(({ seconds, sealed }) => [seconds, sealed])).toEqual([[1, 1]]);
  });

  test('keeps 120 rounds (F23)', () => {
    const history = new History();
    for (let i = 0; i < 1_000; i++) history.add(i * 1_000, new Map([['a', counts(i)]]));
    expect(history.rounds).toHaveLength(120);
  });
});

test('html escapes text in markup', () => {
  assert(
    property(string(), (text) => {
      expect(html`<p title="${text}">${text}</p>`.toString().replaceAll(/<p title="|">|<\/p>/g, '')).not.toMatch(
        /[<>"']/,
      );
    }),
  );
  expect(html`<b>${html`<i>${'&'}</i>`}${[html`x`, html`y`]}${undefined}${0}</b>`.toString()).toBe(
    '<b><i>&#38;</i>xy0</b>',
  );
});

test.each([
  [-5, '0 s'],
  [59.4, '59 s'],
  [59.6, '1 min'],
  [61, '1 min 1 s'],
  [599, '9 min 59 s'],
  [600, '10 min'],
  [659, '10 min'],
  [3_599, '59 min'],
  [3_600, '1 h'],
  [4_500, '1 h 15 min'],
  [172_740, '47 h 59 min'],
  [172_800, '2 d'],
  [200_000, '2 d 7 h'],
])('span writes %f seconds as %s', (seconds, text) => {
  expect(span(seconds)).toBe(text);
});

test.each([
  [0, '0'],
  [0.123, '0.12'],
  [2, '2'],
  [10, '10'],
  [90, '90'],
  [100, '100'],
  [123.4, '123'],
  [250.4, '250'],
])('rate writes %f per second as %s', (value, text) => {
  expect(rate(value)).toBe(text);
});
