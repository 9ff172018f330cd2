import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, createKmsCodec, fileRing, type KmsCodec, localKeyWrapper, type RingStore } from '@sealring/core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { pythonWithPackage, run } from './python-package.ts';
import { type PythonOptions, PythonProcess } from './python-process.ts';

const ringName = 'payments';
const PROPAGATION_S = 4_500;
/** refreshEvery + backoffCap + clockSkew. */
const EMERGENCY_S = 660;
const folder = mkdtempSync(join(tmpdir(), 'sealring-interop-'));
const refusedAs = (name: string, kind: string) => expect.objectContaining({ name, kind });

let python = '';
let names = 0;
let closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The clocks of the machine plus a number of seconds that the test sets, for all members at once. */
class SteppedClock implements Clock {
  aheadMs = 0;
  wallMs(): number {
    return Date.now() + this.aheadMs;
  }
  monotonicNs(): bigint {
    return process.hrtime.bigint() + BigInt(this.aheadMs) * 1_000_000n;
  }
}

/** A ring in a file, with one TypeScript member and Python readers beside it. */
class Fleet {
  readonly path = join(folder, `${++names}.ring`);
  readonly masterKey = randomBytes(32);
  readonly clock = new SteppedClock();
  readonly readers: PythonProcess[] = [];

  async member(more: Partial<{ ring: RingStore; ringName: string; masterKey: Uint8Array }> = {}): Promise<KmsCodec> {
    const codec = await createKmsCodec({
      keyWrapper: localKeyWrapper({ masterKey: more.masterKey ?? this.masterKey }),
      ring: more.ring ?? fileRing(this.path),
      ringName: more.ringName ?? ringName,
      accept: ['sealring', 'python'],
      create: 'now',
      clock: this.clock,
    });
    closing.push(() => codec.close());
    return codec;
  }

  reader(more: Partial<PythonOptions> = {}): PythonProcess {
    const reader = new PythonProcess(python, {
      keyWrapper: { masterKey: this.masterKey.toString('base64') },
      ring: { path: this.path },
      ringName,
      ...more,
    });
    this.readers.push(reader);
    closing.push(() => reader.close());
    return reader;
  }

  async started(more: Partial<PythonOptions> = {}): Promise<PythonProcess> {
    const reader = this.reader(more);
    await reader.start();
    return reader;
  }

  /** Time passes for all members, and all read the ring. */
  async pass(seconds: number, member: KmsCodec): Promise<void> {
    this.clock.aheadMs += seconds * 1_000;
    for (const reader of this.readers) await reader.step(seconds);
    await member.refresh();
    for (const reader of this.readers) await reader.refresh();
  }
}

const open = (codec: { unseal(token: string): Uint8Array }, token: string): string =>
  Buffer.from(codec.unseal(token)).toString();
const sealingKeyOf = (token: string): string => token.slice(4, 16);

/** Every member seals, natively and for a purpose, and every other one unseals; returns the sealing keys. */
async function exchange(member: KmsCodec, readers: readonly PythonProcess[]): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const purpose of [undefined, 'cart']) {
    const own = purpose === undefined ? member : member.for(purpose);
    const token = own.seal(Buffer.from('from TypeScript'));
    for (const reader of readers) {
      expect(await reader.unseal(token, purpose)).toBe('from TypeScript');
      const theirs = await reader.seal('from Python', purpose);
      expect(open(own, theirs)).toBe('from Python');
      for (const other of readers) expect(await other.unseal(theirs, purpose)).toBe('from Python');
      if (theirs.startsWith('sr1.')) keys.add(sealingKeyOf(theirs));
    }
    keys.add(sealingKeyOf(token));
  }
  return keys;
}

test('each language unseals the other’s tokens, in both formats, through rotations, an emergency rotation and a revocation (F8)', async () => {
  const fleet = new Fleet();
  const member = await fleet.member();
  const readers = [await fleet.started(), await fleet.started({ format: 'python' })];
  const [native = await fleet.started(), wire = native] = readers;
  const seen: string[] = [];
  const old: string[] = [await native.seal('old'), await wire.seal('old'), member.seal(Buffer.from('old'))];
  const noteSealingKey = async (): Promise<void> => {
    const keys = await exchange(member, readers);
    expect(keys.size).toBe(1);
    seen.push(...keys);
    for (const token of old) {
      expect(open(member, token)).toBe('old');
      for (const reader of readers) expect(await reader.unseal(token)).toBe('old');
    }
  };

  await noteSealingKey();
  for (const wait of [PROPAGATION_S, PROPAGATION_S]) {
    await member.rotate();
    await fleet.pass(1, member);
    await noteSealingKey();
    await fleet.pass(wait, member);
    await noteSealingKey();
  }
  await member.rotate({ emergency: true });
  await fleet.pass(EMERGENCY_S + 1, member);
  await noteSealingKey();
  // Each key twice, before and after its successor is published; four keys in all.
  expect(new Set(seen).size).toBe(4);
  expect(seen[1]).toBe(seen[0]);
  expect(seen[3]).toBe(seen[2]);

  const before = await native.seal('x');
  await member.revoke(sealingKeyOf(before));
  for (const reader of readers) await reader.refresh();
  await expect(native.unseal(before)).rejects.toEqual(refusedAs('InvalidRequestState', 'unknown key'));
  await expect(wire.unseal(before)).rejects.toEqual(refusedAs('InvalidRequestState', 'unknown key'));
  await noteSealingKey();
  expect(seen.slice(0, -1)).not.toContain(seen.at(-1));
  const { status, keys } = await native.health();
  expect(status).toBe('ok');
  expect(keys[sealingKeyOf(before)]).toBe('revoked');
});

test('both languages refuse a token that was sealed for another purpose', async () => {
  const fleet = new Fleet();
  const member = await fleet.member();
  const reader = await fleet.started();
  const token = member.for('cart').seal(Buffer.from('x'));
  await expect(reader.unseal(token)).rejects.toEqual(refusedAs('InvalidRequestState', 'seal'));
  await expect(reader.unseal(token, 'orders')).rejects.toEqual(refusedAs('InvalidRequestState', 'seal'));
  const theirs = await reader.seal('x', 'cart');
  expect(() => member.unseal(theirs)).toThrow(expect.objectContaining({ reason: 'authentication failed' }));
});

test('a ring of another name shares nothing, even with the same KMS key (F25)', async () => {
  const fleet = new Fleet();
  const orders = new Fleet();
  await fleet.member();
  const other = await fleet.member({ ring: fileRing(orders.path), ringName: 'orders' });
  await expect(fleet.reader({ ringName: 'orders' }).start()).rejects.toEqual(refusedAs('RingStoreError', 'corrupt'));
  const reader = await fleet.started();
  const token = other.seal(Buffer.from('x'));
  await expect(reader.unseal(token)).rejects.toEqual(refusedAs('InvalidRequestState', 'unknown key'));
  // Renamed by an attacker with write access to the store.
  const renamed = readFileSync(orders.path, 'utf8').replace('"ring":"orders"', '"ring":"payments"');
  writeFileSync(fleet.path, renamed);
  await expect(reader.refresh()).rejects.toEqual(refusedAs('RingStoreError', 'corrupt'));
  await expect(fleet.reader().start()).rejects.toMatchObject({ kind: 'corrupt' });
  await expect(fleet.reader({ ring: { path: orders.path } }).start()).rejects.toMatchObject({ kind: 'corrupt' });
});

test('a reader rejects a ring created by an attacker who can wrap and write, and recovers with the right ring (F26)', async () => {
  const fleet = new Fleet();
  const elsewhere = new Fleet();
  const member = await fleet.member();
  const reader = await fleet.started();
  const forger = await fleet.member({ ring: fileRing(elsewhere.path) });
  for (let i = 0; i < 3; i++) await forger.rotate();
  const right = readFileSync(fleet.path);
  writeFileSync(fleet.path, readFileSync(elsewhere.path));
  await expect(reader.refresh()).rejects.toEqual(refusedAs('RingStoreError', 'corrupt'));
  expect(await reader.health()).toMatchObject({ status: 'degraded', lastError: 'store corrupt' });
  const forged = forger.seal(Buffer.from('x'));
  await expect(reader.unseal(forged)).rejects.toEqual(refusedAs('InvalidRequestState', 'unknown key'));
  expect(open(member, await reader.seal('x'))).toBe('x');
  writeFileSync(fleet.path, right);
  await reader.refresh();
  expect(await reader.health()).toMatchObject({ status: 'ok', lastError: null });
});

test('members lose no key or revocation if the ring is rolled back or deleted, and restore it (F26, F31)', async () => {
  const fleet = new Fleet();
  const member = await fleet.member();
  const reader = await fleet.started();
  const token = await reader.seal('x');
  const old = readFileSync(fleet.path);
  await member.revoke(sealingKeyOf(token));
  await reader.refresh();
  const { keys } = await reader.health();
  const sealsWith = sealingKeyOf(await reader.seal('x'));
  const isWhole = async (): Promise<boolean> => {
    await Promise.allSettled([member.refresh(), reader.refresh()]);
    return (await reader.health()).status === 'ok';
  };

  for (const damage of [() => writeFileSync(fleet.path, old), () => rmSync(fleet.path)]) {
    damage();
    await Promise.allSettled([reader.refresh()]);
    expect(await reader.health()).toMatchObject({ status: 'degraded', keys });
    await expect(reader.unseal(token)).rejects.toEqual(refusedAs('InvalidRequestState', 'unknown key'));
    expect(sealingKeyOf(await reader.seal('x'))).toBe(sealsWith);
    await until(isWhole);
    expect(await reader.health()).toMatchObject({ status: 'ok', keys });
    // A member repairs the ring once in refreshEverySeconds.
    await fleet.pass(301, member);
  }
});

test('a reader does not start with keys under a master key that is not the fleet’s (F35)', async () => {
  const fleet = new Fleet();
  await fleet.member({ masterKey: randomBytes(32) });
  await expect(fleet.reader().start()).rejects.toEqual(refusedAs('KeyWrapperError', 'corrupt'));
});

test('a reader that starts first waits for a member to create the ring', async () => {
  const fleet = new Fleet();
  const reader = fleet.reader();
  const starting = reader.start();
  const member = await fleet.member();
  await starting;
  expect((await exchange(member, [reader])).size).toBe(1);
});

test('each language unwraps a data key that the other wrapped locally', async () => {
  const masterKey = randomBytes(32);
  const wrapper = localKeyWrapper({ masterKey });
  const context = {
    'sealring:ring': ringName,
    'sealring:purpose': 'data-key',
    'sealring:times': 'é/\u{1f600}/\u007f/x',
  };
  const dataKey = randomBytes(32);
  const ours = await wrapper.wrap(dataKey, { context });
  const program = `
import base64, json, sys
from sealring import LocalKeyWrapper, WrappedKey
from sealring import base64url
given = json.loads(sys.argv[1])
wrapper = LocalKeyWrapper(master_key=base64.b64decode(given['masterKey']))
wrapped = WrappedKey('local', given['keyId'], base64.b64decode(given['wrapped']))
opened = wrapper.unwrap(wrapped, given['context'])
back = wrapper.wrap(opened, given['context'])
print(json.dumps([opened.hex(), back.key_id, back.wrapped.hex()]))
`;
  const given = {
    masterKey: masterKey.toString('base64'),
    keyId: ours.keyId,
    wrapped: Buffer.from(ours.wrapped).toString('base64'),
    context,
  };
  const { output } = await run(python, ['-c', program, JSON.stringify(given)]);
  const [opened, keyId, wrapped]: string[] = JSON.parse(output);
  expect(opened).toBe(dataKey.toString('hex'));
  const back = { provider: 'local', keyId: keyId ?? '', wrapped: Buffer.from(wrapped ?? '', 'hex') };
  expect(Buffer.from(await wrapper.unwrap(back, { context }))).toEqual(dataKey);
});
