import { type AttributeValue, type DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { RingConflictError, type RingStoreErrorKind } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { dynamodbRing, dynamodbSingleUse } from '../src/index.ts';
import { clientOf, createTable } from './dynamodb-stub.ts';

const moto = inject('moto');
const table = `sealring-${process.pid}`;
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
let names = 0;
const freshName = (): string => `ring-${++names}`;

// Skipped only if this machine lacks Python; under CI=true the set-up fails instead.
describe.skipIf(moto === '')('@aws-sdk/client-dynamodb against moto', () => {
  let client: DynamoDBClient;
  beforeAll(async () => {
    client = clientOf(moto);
    await createTable(client, table);
  });
  afterAll(() => client.destroy());

  const keyOf = (name: string) => ({ pk: { S: `ring#${name}` } });

  function newRing() {
    const name = freshName();
    return { name, ring: dynamodbRing({ table, name, client }) };
  }

  describe('ring', () => {
    test('the item is three strings, so other tools can read it', async () => {
      const { name, ring } = newRing();
      const { revision } = await ring.write('{"keys":[]}', { expected: undefined });
      const { Item } = await client.send(new GetItemCommand({ TableName: table, Key: keyOf(name) }));
      expect(Item).toEqual({ ...keyOf(name), document: { S: '{"keys":[]}' }, revision: { S: revision } });
    });

    test('writing A, B and A again does not bring back the revision of the first A', async () => {
      const { ring } = newRing();
      const first = await ring.write('a', { expected: undefined });
      const second = await ring.write('b', { expected: first.revision });
      const third = await ring.write('a', { expected: second.revision });
      expect(new Set([first.revision, second.revision, third.revision]).size).toBe(3);
      await expect(ring.write('c', { expected: first.revision })).rejects.toBeInstanceOf(RingConflictError);
      expect(await ring.read()).toEqual({ document: 'a', ...third });
    });

    test('the revision that is reported for an item without a revision replaces neither a ring nor an absent item', async () => {
      const { ring } = newRing();
      await expect(ring.write('x', { expected: 'foreign' })).rejects.toBeInstanceOf(RingConflictError);
      await ring.write('x', { expected: undefined });
      await expect(ring.write('y', { expected: 'foreign' })).rejects.toBeInstanceOf(RingConflictError);
    });

    test('a missing table is reported by every call as unavailable, never as absent or a conflict (F9)', async () => {
      const ring = dynamodbRing({ table: 'missing', client });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
      await expect(ring.write('x', { expected: 'y' })).rejects.toMatchObject(failed('unavailable'));
      const used = dynamodbSingleUse({ table: 'missing', client });
      await expect(used.claim('id', new Date(Date.now() + 60_000))).rejects.toMatchObject({ kind: 'unavailable' });
    });

    const text = (S: string): AttributeValue => ({ S });
    test.each<[string, Record<string, AttributeValue>, RingStoreErrorKind]>([
      ['no document', { revision: text('r') }, 'corrupt'],
      ['no revision', { document: text('d') }, 'corrupt'],
      ['a binary document', { document: { B: Buffer.from('d') }, revision: text('r') }, 'corrupt'],
      ['a number as revision', { document: text('d'), revision: { N: '1' } }, 'corrupt'],
      ['an empty document', { document: text(''), revision: text('r') }, 'corrupt'],
      ['an empty revision', { document: text('d'), revision: text('') }, 'corrupt'],
      ['nothing else', {}, 'corrupt'],
      ['no document, and the revision of an item without', { revision: text('foreign') }, 'corrupt'],
      ['a document of 262 145 bytes', { document: text(`${'é'.repeat(131_072)}x`), revision: text('r') }, 'too-large'],
    ])(
      'an item with %s is rejected, and is overwritten by exactly one of the servers that read it (F9, F31)',
      async (_, attributes, kind) => {
        const { name, ring } = newRing();
        await client.send(new PutItemCommand({ TableName: table, Item: { ...keyOf(name), ...attributes } }));
        await expect(ring.read()).rejects.toMatchObject(failed(kind));
        await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
        await expect(ring.read()).rejects.toMatchObject(failed(kind));
        const { revision: expected } = Object(await ring.read().catch((thrown: unknown) => thrown));
        const writes = await Promise.allSettled(Array.from({ length: 8 }, () => ring.write('x', { expected })));
        expect(writes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        expect((await ring.read())?.document).toBe('x');
        await expect(ring.write('late', { expected })).rejects.toBeInstanceOf(RingConflictError);
      },
    );
  });

  describe('single use', () => {
    const used = () => dynamodbSingleUse({ table, client });
    const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1000);

    test('accepts exactly one of 20 concurrent claims, and rejects all other claims and later ones', async () => {
      for (let round = 0; round < 20; round++) {
        const id = `race-${round}`;
        const claims = await Promise.all(Array.from({ length: 20 }, () => used().claim(id, inSeconds(60))));
        expect(claims.filter(Boolean)).toHaveLength(1);
        expect(await used().claim(id, inSeconds(60))).toBe(false);
      }
    });

    test('rejects a claim after the end of the id plus the clock skew (F48)', async () => {
      expect(await used().claim('late', inSeconds(-300))).toBe(false);
      expect(await used().claim('late', inSeconds(-310))).toBe(false);
      const { Item } = await client.send(new GetItemCommand({ TableName: table, Key: { pk: { S: 'used#late' } } }));
      expect(Item).toBeUndefined();
    });

    test('a claimed id is free only after its end plus the clock skew, even if its item remains (F48)', async () => {
      expect(await used().claim('again', inSeconds(60))).toBe(true);
      const startMs = Date.now();
      const clock = vi.spyOn(Date, 'now');
      try {
        clock.mockImplementation(() => startMs + 355_000);
        expect(await used().claim('again', inSeconds(60))).toBe(false);
        clock.mockImplementation(() => startMs + 362_000);
        expect(await used().claim('again', inSeconds(60))).toBe(true);
        expect(await used().claim('again', inSeconds(60))).toBe(false);
      } finally {
        clock.mockRestore();
      }
    });

    test('a ring and ids in one table do not collide', async () => {
      const { name, ring } = newRing();
      await ring.write('x', { expected: undefined });
      expect(await used().claim(`ring#${name}`, inSeconds(60))).toBe(true);
      expect(await used().claim(name, inSeconds(60))).toBe(true);
      expect((await ring.read())?.document).toBe('x');
    });
  });
});
