import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Storage } from '@google-cloud/storage';
import type { RingStoreErrorKind } from '@sealring/core';
import { gcsRing } from '@sealring/gcs';
import { OAuth2Client } from 'google-auth-library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deleteGcsObject, gcsBucket, startFakeGcs } from '../support/fake-gcs.ts';
import type { TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';

type Permission = 'storage.objects.get' | 'storage.objects.list' | 'storage.objects.create' | 'storage.objects.delete';

/** The roles of the README. */
const ROLES = {
  member: ['storage.objects.get', 'storage.objects.list', 'storage.objects.create', 'storage.objects.delete'],
  rotator: ['storage.objects.get', 'storage.objects.create', 'storage.objects.delete'],
  reader: ['storage.objects.get'],
} satisfies Record<string, readonly Permission[]>;

let server: TestServer | undefined;
await startOrSkip(async () => {
  server = await startFakeGcs();
  return server;
});
afterAll(() => server?.stop());
const address = server?.address ?? '';
const object = 'payments.ring';
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

/**
 * fake-gcs-server checks no permissions. This proxy in front of it does, by "IAM permissions for JSON methods" of the
 * Cloud Storage documentation: the token of a request is the list of its permissions.
 */
async function startGate(): Promise<{ endpoint: string; close(): void }> {
  const gate = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { method = 'GET', url = '', headers } = request;
      const held = headers.authorization?.replace('Bearer ', '').split(',') ?? [];
      const lacking = (await permissionsFor(method, url)).filter((permission) => !held.includes(permission));
      if (lacking.length > 0) {
        const status = held.includes('expired') ? 401 : 403;
        const errors = [
          { domain: 'global', reason: status === 401 ? 'authError' : 'forbidden', message: lacking.join() },
        ];
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { code: status, errors } }));
        return;
      }
      const { 'content-type': type = '' } = headers;
      const body = method === 'GET' ? null : Buffer.concat(chunks);
      const answer = await fetch(`${address}${url}`, { method, body, headers: { 'content-type': type } });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
    })();
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(gate.address() as AddressInfo).port}`,
    close() {
      gate.closeAllConnections();
      gate.close();
    },
  };
}

async function permissionsFor(method: string, url: string): Promise<readonly Permission[]> {
  const { pathname } = new URL(url, address);
  if (method === 'GET') return [pathname.endsWith('/o') ? 'storage.objects.list' : 'storage.objects.get'];
  // Replacing an object also deletes the existing one.
  return (await isFounded()) ? ['storage.objects.create', 'storage.objects.delete'] : ['storage.objects.create'];
}

async function isFounded(): Promise<boolean> {
  return (await fetch(`${address}/storage/v1/b/${gcsBucket}/o/${object}`)).ok;
}

describe.skipIf(server === undefined)('Cloud Storage with IAM permissions', () => {
  let gate: Awaited<ReturnType<typeof startGate>> | undefined;
  beforeAll(async () => {
    gate = await startGate();
  });
  afterAll(() => gate?.close());

  function ringOf(permissions: readonly string[]) {
    const authClient = new OAuth2Client();
    authClient.setCredentials({ access_token: permissions.join(','), expiry_date: Date.now() + 3_600_000 });
    const apiEndpoint = gate?.endpoint ?? '';
    const client = new Storage({ apiEndpoint, projectId: 'test', useAuthWithCustomEndpoint: true, authClient });
    return gcsRing({ bucket: gcsBucket, object, client });
  }

  const without = (permission: Permission) => ringOf(ROLES.member.filter((held) => held !== permission));

  test('the permissions in the README are sufficient for a member, a rotator and a reader, and do not let a reader write', async () => {
    await deleteGcsObject(address, gcsBucket, object);
    const [member, rotator, reader] = [ringOf(ROLES.member), ringOf(ROLES.rotator), ringOf(ROLES.reader)];
    expect(await member.read()).toBeUndefined();
    const first = await member.write('x', { expected: undefined });
    expect((await rotator.read())?.document).toBe('x');
    await rotator.write('y', { expected: first.revision });
    const stored = await reader.read();
    expect(stored?.document).toBe('y');
    for (const expected of [undefined, stored?.revision]) {
      await expect(reader.write('z', { expected })).rejects.toMatchObject(failed('denied'));
    }
    expect(await member.read()).toEqual(stored);
  });

  test('a member that lacks one of the permissions is denied, and no answer suggests that there is no ring (F9)', async () => {
    await deleteGcsObject(address, gcsBucket, object);
    await expect(without('storage.objects.get').read()).rejects.toMatchObject(failed('denied'));
    await expect(without('storage.objects.list').read()).rejects.toMatchObject(failed('denied'));
    const founding = without('storage.objects.create').write('x', { expected: undefined });
    await expect(founding).rejects.toMatchObject(failed('denied'));
    const { revision: expected } = await without('storage.objects.delete').write('x', { expected: undefined });
    await expect(without('storage.objects.delete').write('y', { expected })).rejects.toMatchObject(failed('denied'));
    await expect(without('storage.objects.get').read()).rejects.toMatchObject(failed('denied'));
    // On an existing ring, no server lists.
    expect(await without('storage.objects.list').read()).toEqual({ document: 'x', revision: expected });
  });

  test('a server without permissions, or with an expired token, is denied (F9)', async () => {
    for (const ring of [ringOf(['none']), ringOf(['expired'])]) {
      await expect(ring.read()).rejects.toMatchObject(failed('denied'));
      await expect(ring.write('z', { expected: undefined })).rejects.toMatchObject(failed('denied'));
    }
  });
});
