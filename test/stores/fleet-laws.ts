import type { RingStoreInstance } from '@sealring/conformance';
import { createKmsCodec, type KmsCodec, localKeyWrapper, type RingStore } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';

/** Access of the suite to a backend. */
export interface FleetTarget {
  /** Stores of one name share a document, each over its own connections. */
  create(name: string): Promise<RingStoreInstance> | RingStoreInstance;
  /** Deletes everything in the backend. */
  flush(): Promise<void>;
  /** The document in the backend, if there is one. */
  document(name: string): Promise<string | undefined>;
  /** Whether a store is notified of writes by another one. Default: true. */
  readonly hasPush?: boolean;
}

const masterKey = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const state = Buffer.from('state');

/** Tests of two members on one ring, through a rotation and the loss of the store. */
export function describeFleet(title: string, target: FleetTarget): void {
  describe(`a fleet on a ${title} ring`, () => {
    const closing: (() => Promise<void> | undefined)[] = [];
    let names = 0;
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close();
    });

    const freshName = (): string => `fleet-${process.pid}-${Date.now().toString(36)}-${++names}`;

    async function member(name: string, refreshEverySeconds: number): Promise<KmsCodec> {
      const opened = await target.create(name);
      closing.push(async () => opened.close?.());
      const codec = await startMember(opened.store, refreshEverySeconds);
      closing.push(() => codec.close());
      return codec;
    }

    test('each member unseals tokens of the other (F8)', async () => {
      const name = freshName();
      const [a, b] = await Promise.all([member(name, 300), member(name, 300)]);
      expect(b.unseal(a.seal(state))).toEqual(new Uint8Array(state));
      expect(a.unseal(b.seal(state))).toEqual(new Uint8Array(state));
      expect(a.health().sealingKey).toBe(b.health().sealingKey);
    });

    test.skipIf(target.hasPush === false)('a rotation arrives by push, long before the next refresh', async () => {
      const name = freshName();
      const a = await member(name, 300);
      const b = await member(name, 300);
      await a.rotate();
      await until(() => b.health().keys.length === 2);
      expect(b.health().keys.map((key) => key.id)).toEqual(a.health().keys.map((key) => key.id));
    });

    test('running members restore a store that lost everything, with the same keys (F31)', async () => {
      const name = freshName();
      const a = await member(name, 0.5);
      const b = await member(name, 0.5);
      const tokens = [a.seal(state), b.seal(state)];
      const before = a.health().keys.map((key) => key.id);
      for (let round = 0; round < 2; round++) {
        await target.flush();
        // A member that starts during the loss creates no ring, but waits for the members that know it.
        const late = await member(name, 0.5);
        expect(late.health().keys.map((key) => key.id)).toEqual(before);
        for (const token of [...tokens, a.seal(state), b.seal(state), late.seal(state)]) {
          for (const codec of [a, b, late]) expect(codec.unseal(token)).toEqual(new Uint8Array(state));
        }
        expect(keyIdsOf(await target.document(name))).toEqual(before);
      }
    });
  });
}

function startMember(ring: RingStore, refreshEverySeconds: number): Promise<KmsCodec> {
  return createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey }),
    ring,
    // Two members read at once when the ring is created. A start may end with a notification, and the next one that
    // causes a read must come within the time of a test.
    create: refreshEverySeconds === 300 ? 'now' : 'if-absent',
    policy: { refreshEverySeconds, createAfterSeconds: refreshEverySeconds === 300 ? 0 : 20, missRefreshSeconds: 1 },
  });
}

function keyIdsOf(document: string | undefined): string[] {
  const [body = '{"keys":[]}'] = (document ?? '').split('\n');
  const { keys } = JSON.parse(body === '' ? '{"keys":[]}' : body) as { keys: { id: string }[] };
  return keys.map((key) => key.id);
}
