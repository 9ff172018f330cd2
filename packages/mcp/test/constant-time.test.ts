import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createRequestStateCodec } from '../src/index.ts';
import { createMcpdRequestStateCodec } from '../src/mcpd/index.ts';
import { clockAt } from './support/exchange.ts';

/** Comparisons by Node's own constant-time function, which continues to compare. */
const compared: string[] = [];
vi.mock(import('node:crypto'), async (original) => {
  const crypto = await original();
  const timingSafeEqual: typeof crypto.timingSafeEqual = (a, b) => {
    for (const each of [a, b]) compared.push(Buffer.from(each as Uint8Array).toString('latin1'));
    return crypto.timingSafeEqual(a, b);
  };
  return { ...crypto, default: { ...crypto, timingSafeEqual }, timingSafeEqual };
});

const KEY = 'a key of thirty-two bytes or more, for tests';
const clock = clockAt(1_795_000_000_000);
const ctx = Object.create(null);
beforeEach(() => {
  compared.length = 0;
});

function changed(mac: string): string {
  return (mac[0] === 'A' ? 'B' : 'A') + mac.slice(1);
}

describe('comparisons of secrets with values that an attacker chooses (F20)', () => {
  test('the MAC and the bind tag of the SDK’s token format are compared in constant time, matching or not', async () => {
    const states = createRequestStateCodec({ key: KEY, clock, bind: () => 'alice' });
    const token = await states.mint(1, ctx);
    const [, body = '', mac = ''] = token.split('.');
    expect(await states.verify(token, ctx)).toBe(1);
    const envelope: { b: string } = JSON.parse(Buffer.from(body, 'base64url').toString());
    expect(compared).toEqual(expect.arrayContaining([mac, envelope.b]));
    await expect(states.verify(`v1.${body}.${changed(mac)}`, ctx)).rejects.toThrow('mac');
    expect(compared).toContain(changed(mac));
  });

  test('the MAC and the bind tag of mcp.d’s signed format are compared in constant time, matching or not', () => {
    const states = createMcpdRequestStateCodec({ key: KEY, clock });
    const token = states.encode('1', { subject: 'alice' });
    const [, body = '', mac = ''] = token.split('.');
    expect(states.decode(token, { subject: 'alice' })).toBe('1');
    const payload: { b: string } = JSON.parse(Buffer.from(body, 'base64url').toString());
    expect(compared).toEqual(expect.arrayContaining([mac, payload.b]));
    expect(states.decode(`v1.${body}.${changed(mac)}`, { subject: 'alice' })).toBe(null);
    expect(compared).toContain(changed(mac));
  });
});
