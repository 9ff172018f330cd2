import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { Listener } from '../src/proxy/listener.ts';

test('the proxy limits the time for the headers of a request, but not for its body', async () => {
  const answer = async (): Promise<Response> => new Response('ok');
  const listener = new Listener({
    origin: 'http://127.0.0.1',
    host: '127.0.0.1',
    allowedHosts: [],
    stalledMs: 3_000,
    singleHeaders: [],
    handler: answer,
    onFailure: () => undefined,
  });
  const limits: unknown[] = [];
  const onRequest = (message: unknown): void => {
    const { headersTimeout, requestTimeout, timeout } = Object(message).server;
    limits.push({ headersTimeout, requestTimeout, timeout });
  };
  subscribe('http.server.request.start', onRequest);
  onTestFinished(() => void unsubscribe('http.server.request.start', onRequest));
  const response = await fetch(await listener.listen(0));
  expect(await response.text()).toBe('ok');
  await listener.stop(0);
  expect(limits).toEqual([{ headersTimeout: 15_000, requestTimeout: 0, timeout: 3_000 }]);
});
