import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type SpoilingProxy, startSpoilingProxy } from './spoiling-proxy.ts';

let behind: SpoilingProxy;
let proxy: SpoilingProxy;
beforeEach(async () => {
  behind = await startSpoilingProxy('');
  behind.answer({ status: 400, body: '{"a":1}', headers: { Date: 'Thu, 01 Jan 2026 00:00:00 GMT' } });
  proxy = await startSpoilingProxy(behind.address);
});
afterEach(async () => {
  await proxy.close();
  await behind.close();
});

function post(signal?: AbortSignal): Promise<Response> {
  const headers = { 'X-Vault-Token': 'token' };
  return fetch(`${proxy.address}/v1/x`, { method: 'POST', headers, body: 'asked', ...(signal && { signal }) });
}

describe('the proxy that injects faults', () => {
  test('passes on requests and answers unchanged, and records the requests', async () => {
    const answer = await post();
    expect([answer.status, await answer.text()]).toEqual([400, '{"a":1}']);
    expect(answer.headers.get('date')).toBe('Thu, 01 Jan 2026 00:00:00 GMT');
    for (const { requests } of [proxy, behind]) {
      expect(requests).toMatchObject([{ path: '/v1/x', body: 'asked', headers: { 'x-vault-token': 'token' } }]);
    }
  });

  test('changes requests and answers until restore() is called', async () => {
    proxy.spoilRequests((body) => `${body}!`);
    proxy.spoilAnswers(({ body }) => ({ status: 200, body: `${body}?` }));
    const answer = await post();
    expect([answer.status, await answer.text()]).toEqual([200, '{"a":1}?']);
    expect(behind.requests[0]?.body).toBe('asked!');
    proxy.restore();
    expect((await post()).status).toBe(400);
    expect(behind.requests[1]?.body).toBe('asked');
  });

  test('answers a request itself instead of passing it on', async () => {
    proxy.answer({ status: 204 });
    expect((await post()).status).toBe(204);
    expect(behind.requests).toEqual([]);
  });

  test('resets a connection before the headers or in the body', async () => {
    proxy.reset();
    await expect(post()).rejects.toThrow(TypeError);
    proxy.reset('inBody');
    const answer = await post();
    await expect(answer.text()).rejects.toThrow(TypeError);
  });

  test('hangs before the headers or in the body until its client disconnects', async () => {
    proxy.hang();
    await expect(post(AbortSignal.timeout(50))).rejects.toThrow('aborted');
    proxy.hang('inBody');
    const answer = await post(AbortSignal.timeout(500));
    await expect(answer.text()).rejects.toThrow('aborted');
    await expect.poll(() => proxy.abandoned).toBe(2);
  });
});
