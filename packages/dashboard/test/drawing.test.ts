import { describe, expect, test } from 'vitest';
import { mainPartOf, pageOf } from '../src/page.ts';
import { PAGE_SCRIPT } from '../src/page-script.ts';
import { PAGE_STYLE } from '../src/page-style.ts';
import { rateChart } from '../src/rate-chart.ts';
import { timelinePicture } from '../src/timeline-picture.ts';
import type { View, ViewKey, ViewMember } from '../src/view.ts';

const AT = new Date('2026-11-21T12:00:00Z');
const HOUR_MS = 3_600_000;
const hours = (count: number): number => AT.getTime() + count * HOUR_MS;

/** A key that was published 24 hours ago, and seals for 12 hours more. */
function key(hash: string, changes: Partial<ViewKey> = {}): ViewKey {
  return {
    hash,
    fingerprint: 7,
    seals: false,
    state: 'active',
    activates: new Date(hours(-23)),
    sealsUntil: new Date(hours(12)),
    phases: {
      waits: { from: hours(-24), until: hours(-23) },
      seals: { from: hours(-23), until: hours(6) },
      reserve: { from: hours(6), until: hours(12) },
      unseals: { from: hours(12), until: hours(24) },
    },
    ...changes,
  };
}

function member(name: string, health: object | null = {}, failure?: string): ViewMember {
  const whole = {
    status: 'ok',
    ready: true,
    canSeal: true,
    canUnseal: true,
    sealRemaining: 3_600,
    kmsCheckAge: 30,
    fingerprint: 7,
    problems: [],
    ...health,
  };
  return { name, failure, health: failure === undefined && health !== null ? whole : undefined };
}

function viewWith(changes: Partial<View>): View {
  return {
    ring: 'local',
    store: 'memory',
    at: AT,
    nextRotation: undefined,
    trouble: undefined,
    problems: [],
    everySeconds: 5,
    keys: [],
    members: [],
    rounds: [],
    ...changes,
  };
}

/** What a reader sees: the texts of the page, with ` | ` between elements. */
function wordsOf(markup: string): string {
  return markup
    .replaceAll(/<(?:title|style|script)\b[^>]*>[^]*?<\/(?:title|style|script)>/g, '')
    .replaceAll(/\s*<[^>]*>\s*/g, '|')
    .replaceAll(/\|+/g, ' | ');
}

const round = (sealed: number, refused: Readonly<Record<string, number>> = {}, rejected = {}) => ({
  seconds: 5,
  sealed,
  unsealed: 0,
  refused: new Map(Object.entries(refused)),
  rejected: new Map<string, number>(Object.entries(rejected)),
});

describe('the page', () => {
  test('the page has one style and one script with the nonce, and the same main part as the answer to its script', () => {
    const view = viewWith({ keys: [key('k1')] });
    const [whole, main] = [pageOf(view, 'NONCE'), mainPartOf(view)];
    expect(whole).toMatch(/^<!doctype html>\n<html lang="en" data-every="5">\n<head>\n<meta charset="utf-8">/);
    for (const part of [
      '<title>Sealring: local</title>',
      '<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns=\'http://www.w3.org/2000/svg\'',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      `<style nonce="NONCE">${PAGE_STYLE}</style>`,
      `<script nonce="NONCE">${PAGE_SCRIPT}</script>`,
      main.slice(main.indexOf('<main>'), main.indexOf('</main>')),
    ])
      expect(whole).toContain(part);
    expect(main).toMatch(/^<!doctype html>\n<title>Sealring<\/title>\n<main>[^]*<\/main>\n$/);
  });

  test.each<[string, Partial<View>, string]>([
    ['ring, store and time', {}, '| Sealring | / | local | memory · 2026-11-21 12:00:00 UTC |'],
    [
      'trouble',
      { trouble: 'no <answer>' },
      '| The ring could not be read: no &#60;answer&#62;. The data shown is from an earlier read. |',
    ],
    ['a problem', { problems: [{ detail: 'one thing', remedy: 'do this.' }] }, '| One thing. | Do this. |'],
    ['no keys', {}, '| Keys | The ring has no key. |'],
    ['the legend', {}, '| propagating | seals | could still seal without a rotation | verify-only | Tokens |'],
    [
      'a rotation',
      { keys: [key('old'), key('new', { state: 'propagating', activates: new Date(hours(0.5)) })] },
      '| A rotation is in progress. | new | was published, and becomes active in 30 min, at 2026-11-21 12:30:00 UTC. By then, every member will have read it. |',
    ],
    [
      'no members',
      {},
      '| To show token rates and refusals, add the addresses where members export metrics: | --scrape http://127.0.0.1:9464/metrics |',
    ],
    [
      'no refusals',
      { members: [member('a')], rounds: [round(1)] },
      '| Refused by reason, last 5 s | Nothing was refused. |',
    ],
    [
      'refusals, the most frequent reason first',
      {
        members: [member('a')],
        rounds: [round(1, { expired: 1, audience: 2 }), round(1, { expired: 2 }, { malformed: 4 })],
      },
      '| Refused by reason, last 10 s | reason | boundary | codec | malformed | 0 | 4 | expired | 3 | 0 | audience | 2 | 0 |',
    ],
    [
      'the members',
      {
        keys: [key('k1')],
        members: [
          member('a'),
          member('b', {
            status: 'degraded',
            ready: false,
            problems: ['one', 'two'],
            fingerprint: 8,
            sealRemaining: 60,
          }),
          member('c', { canSeal: false, canUnseal: false, kmsCheckAge: undefined }),
          member('d', { fingerprint: 0, kmsCheckAge: 120 }),
          member('e', {}, 'timed out'),
          member('f', null),
        ],
      },
      '| Members | member | status | seals with | unseals | last KMS check | seals without KMS and store ' +
        '| a | ok | k1 | yes | 30 s ago | 1 h ' +
        '| b | degraded, not ready: one, two | another key | yes | 30 s ago | 1 min ' +
        '| c | ok | does not seal | no | unknown | 1 h ' +
        '| d | ok | none | yes | 2 min ago | 1 h ' +
        '| e | timed out | f | exports no metrics of this ring |',
    ],
  ])('the page shows %s', (_name, changes, words) => {
    expect(wordsOf(mainPartOf(viewWith(changes)))).toContain(words);
  });

  test('for a ring without keys and members, the page shows only placeholders', () => {
    expect(wordsOf(mainPartOf(viewWith({})))).toBe(
      ' | Sealring | / | local | memory · 2026-11-21 12:00:00 UTC ' +
        '| The server of this page does not answer: the data is out of date. ' +
        '| Seals now | no key | no key may seal | Next rotation | unknown | the ring has no key ' +
        '| Members | none configured | add them with --scrape ' +
        '| Without KMS and store | unknown | how long sealing would continue | Keys | The ring has no key. ' +
        '| propagating | seals | could still seal without a rotation | verify-only | Tokens ' +
        '| To show token rates and refusals, add the addresses where members export metrics: ' +
        '| --scrape http://127.0.0.1:9464/metrics | ',
    );
  });

  test('the legend has the colour of each phase', () => {
    const phases = ['part waits', 'part seals', 'part reserve', 'part opens'];
    expect(drawn(mainPartOf(viewWith({})), 'rect', 'class')).toEqual(phases);
  });

  test('a rotation in progress is shown only at the new key', () => {
    const markup = mainPartOf(viewWith({ keys: [key('old'), key('new', { state: 'propagating' })] }));
    expect(markup.split('A rotation is in progress')).toHaveLength(2);
  });

  test('shows the rates of the members, and a bar for each refusal reason', () => {
    const rounds = [
      { ...round(5, { expired: 10, audience: 5 }), unsealed: 10 },
      { ...round(10, { expired: 20, audience: 5 }, { malformed: 120 }), unsealed: 20 },
    ];
    const markup = mainPartOf(viewWith({ members: [member('a')], rounds }));
    expect(wordsOf(markup)).toContain(
      '| Tokens per second | Sealed | 2 | /s | peak 2/s | Unsealed | 4 | /s | peak 4/s | Refused | 5 | /s | peak 5/s |',
    );
    expect(drawn(markup, 'figure', 'class')).toEqual(['rate sealed', 'rate unsealed', 'rate refused']);
    const bars = drawn(markup.slice(markup.indexOf('<tbody>')), 'rect', 'width');
    expect(bars).toEqual(['100', '25', String((10 / 120) * 100)]);
  });

  test.each<[Partial<View>, string]>([
    [{}, 'Seals now | no key | no key may seal'],
    [{ keys: [key('k1'), key('k2', { seals: true })] }, 'Seals now | k2 | for 12 h at most'],
    [{}, 'Next rotation | unknown | the ring has no key'],
    [{ nextRotation: new Date(hours(2)) }, 'Next rotation | in 2 h | 2026-11-21 14:00:00 UTC'],
    [{ nextRotation: AT }, 'Next rotation | due | since 0 s'],
    [{ nextRotation: new Date(hours(-1)) }, 'Next rotation | due | since 1 h'],
    [{}, 'Members | none configured | add them with --scrape'],
    [{ members: [member('a'), member('b', { ready: false })] }, 'Members ready | 1 of 2 | all answer'],
    [{ members: [member('a'), member('b', null)] }, 'Members ready | 1 of 2 | 1 do not answer'],
    [{}, 'Without KMS and store | unknown | how long sealing would continue'],
    [
      { members: [member('a'), member('b', { sealRemaining: 600 })] },
      'Without KMS and store | 10 min | sealing would continue for at least this long',
    ],
  ])('for %j, a card shows: %s', (changes, words) => {
    expect(wordsOf(mainPartOf(viewWith(changes)))).toContain(`| ${words} |`);
  });

  test.each<[string, readonly ViewMember[], string | undefined]>([
    ['no status without members', [], undefined],
    ['ok', [member('a')], '<span class="pill ok">ok</span>'],
    ['degraded', [member('a'), member('b', { status: 'degraded' })], '<span class="pill degraded">degraded</span>'],
    [
      'failing',
      [member('a', { status: 'failing' }), member('b', { status: 'degraded' })],
      '<span class="pill failing">failing</span>',
    ],
    [
      'no answer from one member',
      [member('a', { status: 'failing' }), member('b', null)],
      '<span class="pill away">a member does not answer</span>',
    ],
    [
      'an unknown status of one member',
      [member('a', { status: 'better' })],
      '<span class="pill away">a member does not answer</span>',
    ],
  ])('the status beside the title is the status of the worst member: %s', (_name, members, pill) => {
    expect(/<span class="pill[^]*?<\/span>/.exec(mainPartOf(viewWith({ members })))?.[0]).toBe(pill);
  });
});

/** The attributes of the elements with this name, in their order. */
function drawn(markup: string, name: string, ...attributes: readonly string[]): string[] {
  return [...markup.matchAll(new RegExp(`<${name} ([^>]*)>`, 'g'))].map(([, all = '']) =>
    attributes.map((one) => new RegExp(`(?:^| )${one}="([^"]*)"`).exec(all)?.[1]).join(' '),
  );
}

describe('the timeline', () => {
  const revoked = key('k2', {
    state: 'revoked',
    phases: {
      waits: { from: hours(-12), until: hours(-12) },
      seals: { from: hours(-12), until: hours(-6) },
      reserve: { from: hours(-6), until: hours(-6) },
      unseals: { from: hours(-6), until: hours(-6) },
    },
  });
  const draw = () => timelinePicture([key('k1', { seals: true }), revoked], AT).toString();

  test.each([
    {
      name: 'wide',
      box: 'timeline wide 0 0 960 102',
      lines: ['grid 190 190 20 102', 'grid 284.8 284.8 20 102', 'grid 379.5 379.5 20 102', 'grid 474.3 474.3 20 102'],
      count: 9,
      ticks: ['190 14', '284.8 14', '379.5 14', '474.3 14', '569 14', '663.8 14', '758.5 14', '853.3 14', '926 14'],
      texts: ['hash 0 47', 'state 178 47', 'hash 0 81', 'state 178 81'],
      parts: [
        'part waits 190 35 15.8 16',
        'part seals 205.8 35 458 16',
        'part reserve 663.8 35 94.7 16',
        'part opens 758.5 35 189.5 16',
        'part seals 379.5 69 94.8 16',
      ],
      now: '569 569 18 102',
      dot: '569 18 3.5',
    },
    {
      name: 'narrow',
      box: 'timeline narrow 0 0 360 126',
      lines: ['grid 0 0 20 126', 'grid 90 90 20 126', 'grid 180 180 20 126', 'grid 270 270 20 126'],
      count: 5,
      ticks: ['34 14', '90 14', '180 14', '270 14', '326 14'],
      texts: ['hash 0 43', 'state 360 43', 'hash 0 89', 'state 360 89'],
      parts: [
        'part waits 0 48 7.5 16',
        'part seals 7.5 48 217.5 16',
        'part reserve 225 48 45 16',
        'part opens 270 48 90 16',
        'part seals 90 94 45 16',
      ],
      now: '180 180 18 126',
      dot: '180 18 3.5',
    },
  ])('the $name picture has a bar for each phase of each key, and shows the time on its axis', (expected) => {
    const picture = new RegExp(`<svg class="timeline ${expected.name}[^]*?</svg>`).exec(draw())?.[0] ?? '';
    const lines = drawn(picture, 'line', 'class', 'x1', 'x2', 'y1', 'y2');
    const texts = drawn(picture, 'text', 'class', 'x', 'y');
    expect({
      name: expected.name,
      box: drawn(picture, 'svg', 'class', 'viewBox')[0],
      lines: lines.slice(0, 4),
      count: lines.length - 1,
      ticks: texts.filter((text) => text.startsWith('tick ')).map((text) => text.slice(5)),
      texts: texts.filter((text) => !text.startsWith('tick ')),
      parts: drawn(picture, 'rect', 'class', 'x', 'y', 'width', 'height'),
      now: lines.at(-1)?.slice(4),
      dot: drawn(picture, 'circle', 'cx', 'cy', 'r')[0],
    }).toEqual(expected);
  });

  test('the titles in the timeline name the state and times of each key, and the labels name the hours', () => {
    const both = draw();
    expect([...both.matchAll(/<title>(.*?)<\/title>/g)].slice(0, 2).map(([, title]) => title)).toEqual([
      'k1: active; seals 2026-11-20 13:00:00 to 2026-11-22 00:00:00, unseals until 2026-11-22 12:00:00 UTC',
      'k2: revoked; revoked 2026-11-21 06:00:00 UTC',
    ]);
    expect(drawn(both, 'g', 'class', 'data-key').slice(0, 2)).toEqual(['key active k1', 'key revoked k2']);
    expect([...both.matchAll(/class="state"[^>]*>(.*?)</g)].slice(0, 2).map(([, text]) => text)).toEqual([
      'seals now',
      'revoked',
    ]);
    expect([...both.matchAll(/class="tick"[^>]*>(.*?)</g)].slice(0, 3).map(([, text]) => text)).toEqual([
      '11-20 12:00',
      '11-20 18:00',
      '11-21 00:00',
    ]);
  });

  test.each(['propagating', 'active', 'verify-only', 'expired', 'revoked'] as const)(
    'the state of a key that does not seal now is written as %s',
    (state) => {
      const picture = timelinePicture([key('k1', { state })], AT).toString();
      expect(picture).toContain(`<g class="key ${state}" data-key="k1"><title>k1: ${state}; `);
      expect(picture).toMatch(new RegExp(`<text class="state" x="178" y="47">${state}</text>`));
    },
  );

  test.each([
    [1, [2, 2]],
    [10, [11, 4]],
    [48, [9, 5]],
    [2_000, [6, 5]],
    [5e7, [11, 5]],
  ])('the axes of a ring of %d hours have so few lines that their labels have room: %j', (length, lines) => {
    const start = { from: hours(0), until: hours(0) };
    const unseals = { from: hours(0), until: hours(length) };
    const pictures = timelinePicture(
      [key('k1', { phases: { waits: start, seals: start, reserve: start, unseals } })],
      AT,
    );
    expect(
      pictures
        .toString()
        .split('<svg')
        .slice(1)
        .map((one) => one.split('class="grid"').length - 1),
    ).toEqual(lines);
  });

  test('a ring whose times are all the same instant has a picture', () => {
    const now = { from: hours(0), until: hours(0) };
    const phases = { waits: now, seals: now, reserve: now, unseals: now };
    expect(drawn(timelinePicture([key('k1', { phases })], AT).toString(), 'circle', 'cx')).toEqual(['190', '0']);
  });

  test('a bar is at least two units wide, and the picture includes the current time even if no bar does', () => {
    const seals = { from: hours(100), until: hours(100) + 1 };
    const end = { from: hours(100), until: hours(100) };
    const phases = { waits: end, seals, reserve: end, unseals: end };
    const picture = timelinePicture([key('k1', { phases })], AT);
    expect(drawn(picture.toString(), 'rect', 'x', 'width')[0]).toBe('948 2');
    expect(drawn(picture.toString(), 'circle', 'cx')[0]).toBe('190');
  });
});

describe('the chart of a rate', () => {
  const chart = (...counts: readonly number[]) =>
    rateChart(
      'Sealed',
      'sealed',
      counts.map((count) => round(count)),
      ({ sealed }) => sealed,
    ).toString();

  test.each([
    [[], '0', '0', undefined],
    [[10], '2', '2', undefined],
    [[0, 0], '0', '0', '285.0,70.0 300.0,70.0'],
    [[10, 5], '1', '2', '285.0,8.0 300.0,39.0'],
    [[0, 20, 10], '2', '4', '270.0,70.0 285.0,8.0 300.0,39.0'],
  ])('for the counts %j, the rate is %s/s, its peak is %s/s and its curve is %s', (counts, now, peak, curve) => {
    const markup = chart(...counts);
    expect(wordsOf(markup)).toBe(` | Sealed | ${now} | /s | peak ${peak}/s | `);
    expect(drawn(markup, 'svg', 'viewBox', 'aria-label')).toEqual([`0 0 300 72 Sealed: ${now} per second`]);
    expect(drawn(markup, 'polyline', 'points')[0]).toBe(curve);
    const [first, last] = [curve?.split(',')[0], '300.0'];
    expect(drawn(markup, 'polygon', 'points')[0]).toBe(curve && `${first},72 ${curve} ${last},72`);
    expect(markup).toMatch(/^<figure class="rate sealed">/);
  });

  test('the curve of more than 21 rounds fills the whole width', () => {
    const points = drawn(chart(...Array.from({ length: 41 }, () => 1)), 'polyline', 'points')[0]?.split(' ');
    expect([points?.length, points?.[0], points?.[1]]).toEqual([41, '0.0,8.0', '7.5,8.0']);
  });
});
