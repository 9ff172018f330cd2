import { hashedKeyId } from '@sealring/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { askMember } from '../src/ask-member.ts';
import { History } from '../src/history.ts';
import { keyFingerprint } from '../src/key-phases.ts';
import { reportOf } from '../src/member.ts';
import { refusalOfMember } from '../src/member-address.ts';
import { readSamples, type Sample } from '../src/prometheus-text.ts';
import type { RingReport } from '../src/ring-report.ts';
import { scrape } from '../src/scrape.ts';
import { isLoopback, servePage } from '../src/server.ts';
import { viewOf } from '../src/view.ts';
import { answering } from './answering.ts';

afterEach(() => vi.restoreAllMocks());

const metric = (name: string, value: number, labels: object = {}, ring = 'local'): Sample => ({
  name: `sealring_${name}`,
  value,
  labels: new Map(Object.entries({ sealring_ring_name: ring, ...labels })),
});
const reported = (...samples: readonly Sample[]) => reportOf({ samples }, 'local');

describe('the report of a member', () => {
  test('the report has the health of this ring', () => {
    const { health } = reported(
      metric('codec_status', 0, { sealring_status: 'ok' }),
      metric('codec_status', 1, { sealring_status: 'failing' }, 'other'),
      metric('codec_status', 1, { sealring_status: 'degraded' }),
      metric('codec_ready', 0, {}, 'other'),
      metric('codec_ready', 1),
      metric('codec_can_seal', 1),
      metric('codec_can_unseal', 1),
      metric('codec_seal_remaining', 3_000),
      metric('codec_kms_check_age', 12.5),
      metric('ring_sealing_key_fingerprint', 12_345),
      metric('codec_problem', 1, { sealring_problem_kind: 'clock' }),
      metric('codec_problem', 0, { sealring_problem_kind: 'kms' }),
      metric('codec_problem', 1, { sealring_problem_kind: 'x'.repeat(41) }),
      metric('codec_problem', 1),
    );
    expect(health).toEqual({
      status: 'degraded',
      ready: true,
      canSeal: true,
      canUnseal: true,
      sealRemaining: 3_000,
      kmsCheckAge: 12.5,
      fingerprint: 12_345,
      problems: ['clock', 'x'.repeat(40), ''],
    });
  });

  test('missing metrics count as 0, a missing age of the KMS check counts as unknown, and without a status there is no health', () => {
    expect(reported(metric('codec_status', 1, { sealring_status: 'ok' }), metric('codec_ready', 0)).health).toEqual({
      status: 'ok',
      ready: false,
      canSeal: false,
      canUnseal: false,
      sealRemaining: 0,
      kmsCheckAge: undefined,
      fingerprint: 0,
      problems: [],
    });
    expect(reported(metric('codec_status', 0, { sealring_status: 'ok' }), metric('codec_ready', 1)).health).toBe(
      undefined,
    );
  });

  test('the counts of the boundary are summed over all rings, and the counts of the codec belong to this ring', () => {
    const { counts } = reported(
      metric('boundary_sealed_tokens_total', 1, { mcp_method_name: 'tools/call' }),
      metric('boundary_sealed_tokens_total', 2, {}, 'other'),
      metric('boundary_unsealed_tokens_total', 4),
      metric('boundary_refused_tokens_total', 8, { sealring_reject_reason: 'expired' }, 'other'),
      metric('boundary_refused_tokens_total', 16, { sealring_reject_reason: 'expired' }),
      metric('boundary_refused_tokens_total', 32, { sealring_reject_reason: 'y'.repeat(41) }),
      metric('boundary_refused_tokens_total', 64),
      metric('codec_rejected_tokens_total', 128, { sealring_reject_reason: 'malformed' }),
      metric('codec_rejected_tokens_total', 256, { sealring_reject_reason: 'malformed' }, 'other'),
    );
    expect(counts).toEqual({
      sealed: 3,
      unsealed: 4,
      refused: new Map([
        ['expired', 24],
        ['y'.repeat(40), 32],
        ['', 64],
      ]),
      rejected: new Map([['malformed', 128]]),
    });
  });

  test('the report has at most 32 reasons and 16 problems (F23)', () => {
    const many = (line: (n: number) => Sample) => Array.from({ length: 40 }, (_, n) => line(n));
    const { health, counts } = reported(
      metric('codec_status', 1, { sealring_status: 'ok' }),
      ...many((n) => metric('codec_problem', 1, { sealring_problem_kind: String(n) })),
      ...many((n) => metric('boundary_refused_tokens_total', 1, { sealring_reject_reason: String(n) })),
      metric('boundary_refused_tokens_total', 1, { sealring_reject_reason: '31' }),
    );
    expect(health?.problems).toHaveLength(16);
    expect([counts.refused.size, counts.refused.get('31')]).toEqual([32, 2]);
  });

  test('a member that did not answer has no health and no counts', () => {
    expect(reportOf({ failure: 'timed out' }, 'local')).toEqual({
      health: undefined,
      counts: { sealed: 0, unsealed: 0, refused: new Map(), rejected: new Map() },
    });
  });
});

test('the view has the hashes of the keys, and a name, a failure and counts for each member', () => {
  const at = new Date('2026-11-21T12:00:00Z');
  const times = { created: at, activates: at, sealsUntil: at, unsealsUntil: at };
  const keys = ['one', 'two'].map((id) => ({ id, state: 'active' as const, ...times }));
  const ring = {
    ring: 'local',
    store: 'memory',
    at,
    keys,
    sealingKey: 'two',
    nextRotation: at,
    trouble: 'none',
    problems: [],
  };
  const history = new History();
  const samples = readSamples('sealring_codec_status{sealring_ring_name="local",sealring_status="ok"} 1');
  const view = viewOf(
    Object(ring),
    [
      { url: new URL('http://a:1/'), answer: { samples } },
      { url: new URL('http://b:2/metrics'), answer: { failure: 'timed out' } },
    ],
    { history, everySeconds: 5 },
  );
  expect(view).toMatchObject({
    ring: 'local',
    store: 'memory',
    at,
    nextRotation: at,
    trouble: 'none',
    problems: [],
    everySeconds: 5,
  });
  expect(view.rounds).toBe(history.rounds);
  expect(view.keys).toMatchObject(
    ['one', 'two'].map((id) => ({
      hash: hashedKeyId(id),
      fingerprint: keyFingerprint(id),
      seals: id === 'two',
      state: 'active',
    })),
  );
  expect(view.members).toMatchObject([
    { name: 'a:1', failure: undefined, health: { status: 'ok' } },
    { name: 'b:2/metrics', failure: 'timed out', health: undefined },
  ]);
  expect(JSON.stringify(view)).not.toMatch(/"(?:one|two)"/);
  expect(keyFingerprint('one')).toBe(Buffer.from(hashedKeyId('one'), 'base64url').readUIntBE(0, 6));
});

test('a round counts what a member sealed since its last answer, even if that was several rounds ago', () => {
  const history = new History();
  const ring: RingReport = Object({ ring: 'local', keys: [] });
  const asked = (sealed: number | undefined) => {
    const samples = sealed === undefined ? [] : [metric('boundary_sealed_tokens_total', sealed)];
    return { url: new URL('http://a:1/'), answer: sealed === undefined ? { failure: 'timed out' } : { samples } };
  };
  for (const sealed of [7, undefined, 10, 14]) viewOf(ring, [asked(sealed)], { history, everySeconds: 5 });
  expect(history.rounds.map(({ sealed }) => sealed)).toEqual([0, 3, 4]);
});

describe('askMember', () => {
  const limits = { timeoutMs: 5_000, maxBytes: 12 };

  test('askMember returns the status, and a text of up to the maximum size', async () => {
    let accepted: unknown;
    await using member = await answering((request, response) => {
      accepted = request.headers.accept;
      response.writeHead(503).end('twelve bytes');
    });
    expect(await askMember(member.url, limits)).toEqual({ status: 503, text: 'twelve bytes' });
    expect(accepted).toBe('*/*');
    const smaller = { ...limits, maxBytes: 11, accept: 'text/plain' };
    expect(await askMember(member.url, smaller)).toEqual({ status: 503, text: undefined });
    expect(accepted).toBe('text/plain');
  });

  test('askMember reads a character that arrives in pieces, and an answer without a body', async () => {
    const pieces = new Response(ReadableStream.from(Array.from(Buffer.from('5 €'), (byte) => Uint8Array.of(byte))));
    const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValueOnce(pieces);
    expect(await askMember('http://127.0.0.1:1/', limits)).toEqual({ status: 200, text: '5 €' });
    fetched.mockResolvedValueOnce(new Response(null, { status: 204 }));
    expect(await askMember('http://127.0.0.1:1/', limits)).toEqual({ status: 204, text: '' });
  });

  test('the metrics of a member are read within limits on time and size', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch');
    fetched.mockRejectedValueOnce(new DOMException('late', 'TimeoutError'));
    expect(await scrape('http://127.0.0.1:1/')).toEqual({ failure: 'timed out' });
    const [url, options] = fetched.mock.calls[0] ?? [];
    expect([url, options?.headers]).toEqual(['http://127.0.0.1:1/', { accept: 'text/plain;version=0.0.4' }]);
    fetched.mockRejectedValueOnce(new TypeError('fetch failed'));
    expect(await scrape('http://127.0.0.1:1/')).toEqual({ failure: 'no answer' });
    const text = 'sealring_a 1\n'.padEnd(1_048_576, '#');
    fetched.mockResolvedValueOnce(new Response(text)).mockResolvedValueOnce(new Response(`${text}#`));
    expect(await scrape('http://127.0.0.1:1/')).toMatchObject({ samples: [{ name: 'sealring_a' }] });
    expect(await scrape('http://127.0.0.1:1/')).toEqual({ failure: 'longer than 1 MiB' });
  });

  test('askMember does not follow redirects, waits no longer than its limit, and never rejects', async () => {
    await using member = await answering((request, response) => {
      if (request.url === '/moved') response.writeHead(302, { location: '/metrics' }).end();
    });
    const moved = new URL('/moved', member.url).href;
    expect(await askMember(moved, limits)).toEqual({ failure: 'unreachable' });
    expect(await askMember(member.url, { ...limits, timeoutMs: 20 })).toEqual({ failure: 'timeout' });
    expect(await askMember('http://127.0.0.1:1/', limits)).toEqual({ failure: 'unreachable' });
  });

  test.each([
    [200, { samples: [{ name: 'sealring_a', labels: new Map(), value: 1 }] }],
    [299, { samples: [{ name: 'sealring_a', labels: new Map(), value: 1 }] }],
    [300, { failure: 'HTTP status 300' }],
    [404, { failure: 'HTTP status 404' }],
  ])('the metrics of a member that answers with the status %i are %j', async (status, scraped) => {
    await using member = await answering((_request, response) => response.writeHead(status).end('sealring_a 1\n'));
    expect(await scrape(member.url)).toEqual(scraped);
  });
});

test.each([
  ['http://127.0.0.1:9464/metrics', undefined],
  ['https://member.example', undefined],
  ['ftp://member.example', 'be an address that starts with http:// or https://'],
  ['xhttp://member.example', 'be an address that starts with http:// or https://'],
  ['member', 'be an address that starts with http:// or https://'],
  ['http://user@member.example', 'have no user, password, query or fragment'],
  ['http://:word@member.example', 'have no user, password, query or fragment'],
  ['http://member.example/?a', 'have no user, password, query or fragment'],
  ['http://member.example/#a', 'have no user, password, query or fragment'],
])('for the address %s of a member, the refusal is: %s', (address, refusal) => {
  expect(refusalOfMember(address)).toBe(refusal);
});

test.each([
  ['localhost', true],
  ['::1', true],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::ffff:127.0.0.1', true],
  ['127.evil.example', false],
  ['10.127.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['0.0.0.0', false],
  ['::', false],
])('only this machine can reach %s: %s', (host, isOnly) => {
  expect(isLoopback(host)).toBe(isOnly);
});

test('the URL of a page on an IPv6 address has brackets', async () => {
  const server = await servePage('::1', 0, { whole: () => 'whole', main: () => 'main' });
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+\/$/);
  expect(await (await fetch(server.url)).text()).toBe('whole');
  expect(await (await fetch(`${server.url}main`)).text()).toBe('main');
  await server.close();
  await expect(fetch(server.url)).rejects.toThrow('fetch failed');
});
