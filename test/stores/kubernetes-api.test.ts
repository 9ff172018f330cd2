import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request as requestOverHttp } from 'node:http';
import { request as requestOverHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { type ApiServer, NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { startRealApiServerOrSkip } from '../support/kubernetes/real-api-server.ts';

/*
 * Assumptions of the ring store and its tests about an API server. The fake, which every other test uses, and
 * kube-apiserver get the same calls, and must give the same answers.
 */

const servers: readonly (readonly [title: string, api: ApiServer | undefined])[] = [
  ['the fake API server', await startFakeApiServer()],
  ['kube-apiserver', await startRealApiServerOrSkip()],
];
afterAll(async () => {
  for (const [, api] of servers) await api?.server.stop();
});

const base64 = (length: number | string): string =>
  (typeof length === 'string' ? Buffer.from(length) : Buffer.alloc(length)).toString('base64');
const OTHER_UID = '00000000-0000-0000-0000-000000000000';
const MAX_DATA_BYTES = 1_048_576;

/** The members of an answer that a program reads, without messages and times. */
interface Told {
  readonly status: number;
  /** Whether the answer has the date of the server. */
  readonly isDated: boolean;
  readonly kind?: string;
  readonly reason?: string;
  /** `resource/name` of the refused object. */
  readonly about?: string;
  /** `reason field` of each cause. */
  readonly causes?: readonly string[];
  readonly data?: unknown;
  readonly version: string;
  readonly uid: string;
}

function member(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value);
}

/** One object with a new name, and the calls about it. */
class Talk {
  readonly name = `a-${randomUUID()}`;
  readonly #api: ApiServer;
  readonly resource: 'secrets' | 'configmaps';
  readonly namespace: string;

  constructor(api: ApiServer, resource: 'secrets' | 'configmaps' = 'secrets', namespace = NAMESPACE) {
    this.#api = api;
    this.resource = resource;
    this.namespace = namespace;
  }

  get collection(): string {
    return `/api/v1/namespaces/${this.namespace}/${this.resource}`;
  }

  async open(method: string, path: string, body?: object, token?: string): Promise<IncomingMessage> {
    const config = this.#api.config(token === undefined ? {} : { token });
    const url = new URL((config.getCurrentCluster()?.server ?? '') + path);
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const options = { method, headers: { 'content-type': type }, agent: false as const };
    await config.applyToHTTPSOptions(options);
    const asked = (url.protocol === 'http:' ? requestOverHttp : requestOverHttps)(url, options);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await once(asked, 'response');
    return response;
  }

  async ask(method: string, path: string, body?: object, token?: string): Promise<Told> {
    const response = await this.open(method, path, body, token);
    return told(response.headers.date ?? '', response.statusCode ?? 0, await text(response));
  }

  create(rest: object = {}, token?: string): Promise<Told> {
    const kind = this.resource === 'secrets' ? 'Secret' : 'ConfigMap';
    const body = { apiVersion: 'v1', kind, metadata: { name: this.name }, ...rest };
    return this.ask('POST', this.collection, body, token);
  }

  get(token?: string): Promise<Told> {
    return this.ask('GET', `${this.collection}/${this.name}`, undefined, token);
  }

  patch(body: object, token?: string): Promise<Told> {
    return this.ask('PATCH', `${this.collection}/${this.name}`, body, token);
  }

  remove(): Promise<Told> {
    return this.ask('DELETE', `${this.collection}/${this.name}`);
  }

  /** The types of the events of a watch of at most two seconds; the status of a watch that is refused. */
  async watch(from: string, during?: () => Promise<unknown>, token?: string): Promise<readonly string[]> {
    const query = `watch=true&fieldSelector=metadata.name%3D${this.name}&allowWatchBookmarks=true&timeoutSeconds=2${from}`;
    const response = await this.open('GET', `${this.collection}?${query}`, undefined, token);
    await during?.();
    const body = await text(response);
    if (response.statusCode !== 200) return [`${response.statusCode}`];
    return body
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { type, object } = JSON.parse(line);
        const reason = member(object, 'reason') ?? Object.keys(Object(member(object, 'metadata', 'annotations')))[0];
        return [type, member(object, 'code'), reason].filter((part) => part !== undefined).join(' ');
      });
  }
}

function told(date: string, status: number, body: string): Told {
  const json: unknown = body.startsWith('{') ? JSON.parse(body) : undefined;
  const [reason, details] = [member(json, 'reason'), member(json, 'details')];
  const [name, kind] = [member(details, 'name'), member(details, 'kind')];
  const causes = member(details, 'causes');
  const listed = Array.isArray(causes) ? causes.map((cause) => `${cause.reason} ${cause.field}`) : [];
  return {
    status,
    isDated: !Number.isNaN(Date.parse(date)),
    kind: String(member(json, 'kind')),
    ...(typeof reason === 'string' && { reason }),
    ...((name !== undefined || kind !== undefined) && { about: `${String(kind)}/${String(name)}` }),
    // kube-apiserver names some causes twice.
    ...(listed.length > 0 && { causes: [...new Set(listed)] }),
    ...(member(json, 'data') !== undefined && { data: member(json, 'data') }),
    version: String(member(json, 'metadata', 'resourceVersion')),
    uid: String(member(json, 'metadata', 'uid')),
  };
}

const refused = (status: number, reason: string, about?: string, ...causes: readonly string[]) => ({
  status,
  isDated: true,
  kind: 'Status',
  reason,
  ...(about !== undefined && { about }),
  ...(causes.length > 0 && { causes }),
});

describe.each(servers)('answers of %s', (_, api) => {
  const talk = (...where: [resource?: 'secrets' | 'configmaps', namespace?: string]): Talk => {
    if (api === undefined) throw new Error('not started');
    return new Talk(api, ...where);
  };
  const grant = (permissions: readonly string[]): Promise<string> => api?.token(permissions) ?? Promise.reject(api);

  describe.skipIf(api === undefined)('to calls', () => {
    test('an object that does not exist is NotFound, and the answer names it', async () => {
      const object = talk();
      const missing = refused(404, 'NotFound', `secrets/${object.name}`);
      expect(await object.get()).toMatchObject(missing);
      expect(await object.patch({ data: {} })).toMatchObject(missing);
      expect(await object.remove()).toMatchObject(missing);
    });

    test('an object can be created only once', async () => {
      const object = talk();
      expect(await object.create({ data: { ring: base64('x') } })).toMatchObject({
        status: 201,
        data: { ring: 'eA==' },
      });
      expect(await object.create()).toMatchObject(refused(409, 'AlreadyExists', `secrets/${object.name}`));
    });

    test('a patch that names a version other than 0 applies only to that version, and any other patch applies to any version', async () => {
      const object = talk();
      const { uid, version } = await object.create();
      const patch = (resourceVersion: string | undefined, value: string) =>
        object.patch({ metadata: { uid, resourceVersion }, data: { ring: base64(value) } });
      const first = await patch(version, 'one');
      expect(first).toMatchObject({ status: 200, data: { ring: base64('one') }, uid });
      expect(first.version).not.toBe(version);
      const stale = refused(409, 'Conflict', `secrets/${object.name}`);
      expect(await patch(version, 'two')).toMatchObject(stale);
      expect(await patch('99999999', 'two')).toMatchObject(stale);
      expect((await patch('abc', 'two')).status).toBe(500);
      expect((await patch('9'.repeat(30), 'two')).status).toBe(500);
      expect(await object.get()).toEqual({ ...first, status: 200 });
      expect(await patch(undefined, 'three')).toMatchObject({ status: 200 });
      expect(await patch('0', 'four')).toMatchObject({ status: 200, data: { ring: base64('four') } });
    });

    test('a patch that changes nothing keeps the version, but a changed annotation results in a new one', async () => {
      const object = talk();
      const { version } = await object.create({ data: { ring: base64('x') } });
      expect((await object.patch({ data: { ring: base64('x') } })).version).toBe(version);
      expect((await object.patch({ metadata: { annotations: { write: '1' } } })).version).not.toBe(version);
    });

    test('a patch for another uid is invalid, and is a conflict if the version differs too', async () => {
      const object = talk();
      const { version } = await object.create();
      const patch = (resourceVersion: string) =>
        object.patch({ metadata: { uid: OTHER_UID, resourceVersion }, data: { ring: base64('x') } });
      expect(await patch(version)).toMatchObject(
        refused(422, 'Invalid', `Secret/${object.name}`, 'FieldValueInvalid metadata.uid'),
      );
      expect(await patch('1')).toMatchObject(refused(409, 'Conflict', `secrets/${object.name}`));
    });

    test('an object that is deleted and created again has another uid and another version', async () => {
      const object = talk();
      const first = await object.create();
      expect(await object.remove()).toMatchObject({ status: 200, kind: 'Status', about: `secrets/${object.name}` });
      const second = await object.create();
      expect(second.uid).not.toBe(first.uid);
      expect(second.version).not.toBe(first.version);
    });

    test('an object without entries has no data, and an entry may be empty', async () => {
      const object = talk();
      expect(await object.create()).not.toHaveProperty('data');
      expect(await object.patch({ data: { ring: '' } })).toMatchObject({ status: 200, data: { ring: '' } });
    });

    test('an entry of a Secret that is not base64 is refused', async () => {
      const object = talk();
      expect(await object.create({ data: { ring: '***' } })).toMatchObject(refused(400, 'BadRequest'));
      await object.create();
      for (const ring of ['***', 7]) {
        expect(await object.patch({ data: { ring } })).toMatchObject(
          refused(422, 'Invalid', undefined, 'FieldValueInvalid patch'),
        );
      }
    });

    test.each([
      ['secrets', 'Secret', 'data'],
      ['configmaps', 'ConfigMap', '[]'],
    ] as const)('the entries of %s hold at most 1 MiB in total', async (resource, kind, field) => {
      const object = talk(resource);
      const largest = resource === 'secrets' ? base64(MAX_DATA_BYTES) : 'a'.repeat(MAX_DATA_BYTES);
      expect(await object.create({ data: { theirs: largest } })).toMatchObject({ status: 201 });
      const tooLong = refused(422, 'Invalid', `${kind}/${object.name}`, `FieldValueTooLong ${field}`);
      expect(await object.patch({ data: { ring: base64('x') } })).toMatchObject(tooLong);
    });

    test('a request of more than 3 MiB is refused as too large', async () => {
      // Slightly more than the limit: a server may answer a larger body with a reset before it has read it.
      expect(await talk().create({ data: { ring: base64(2_360_000) } })).toMatchObject(
        refused(413, 'RequestEntityTooLarge'),
      );
    });

    test.each([
      ['secrets', 'Secret'],
      ['configmaps', 'ConfigMap'],
    ] as const)('the data of immutable %s cannot be changed', async (resource, kind) => {
      const object = talk(resource);
      await object.create({ data: { ring: base64('x') }, immutable: true });
      expect(await object.patch({ data: { ring: base64('y') } })).toMatchObject(
        refused(422, 'Invalid', `${kind}/${object.name}`, 'FieldValueForbidden data'),
      );
    });

    test('in a missing namespace, a read reports a missing object, but a create reports the missing namespace', async () => {
      const object = talk('secrets', 'nowhere');
      expect(await object.get()).toMatchObject(refused(404, 'NotFound', `secrets/${object.name}`));
      expect(await object.create()).toMatchObject(refused(404, 'NotFound', 'namespaces/nowhere'));
    });

    test('a path without a resource is answered with 404 and no Status', async () => {
      expect(await talk().ask('GET', '/nothing')).toMatchObject({ status: 404, kind: 'undefined' });
    });

    test('a request with an unknown token is Unauthorized', async () => {
      expect(await talk().get('unknown')).toMatchObject(refused(401, 'Unauthorized'));
    });

    test('a permission applies only to its verb, resource, name and namespace', async () => {
      const object = talk();
      await object.create();
      const token = await grant([`get secrets/${object.name}`, `watch secrets/${object.name}`]);
      const forbidden = refused(403, 'Forbidden', `secrets/${object.name}`);
      expect(await object.get(token)).toMatchObject({ status: 200 });
      expect(await object.patch({ data: {} }, token)).toMatchObject(forbidden);
      expect(await object.create({}, token)).toMatchObject(refused(403, 'Forbidden', 'secrets/undefined'));
      const other = talk();
      expect(await other.get(token)).toMatchObject(refused(403, 'Forbidden', `secrets/${other.name}`));
      expect(await other.watch('', undefined, token)).toEqual(['403']);
      expect(await object.watch('', undefined, token)).not.toEqual(['403']);
      const inConfigMap = talk('configmaps');
      expect(await inConfigMap.get(token)).toMatchObject(refused(403, 'Forbidden', `configmaps/${inConfigMap.name}`));
      const elsewhere = talk('secrets', 'default');
      expect(await elsewhere.get(token)).toMatchObject(refused(403, 'Forbidden', `secrets/${elsewhere.name}`));
    });

    test('a permission to create applies to every name', async () => {
      const object = talk();
      const token = await grant(['create secrets/', `get secrets/${object.name}`]);
      expect(await talk().create({}, token)).toMatchObject({ status: 201 });
      expect(await object.create({}, token)).toMatchObject({ status: 201 });
    });
  });

  describe.skipIf(api === undefined)('to watches', () => {
    const INITIAL_END = 'BOOKMARK k8s.io/initial-events-end';

    test('a watch from no version, or from 0, begins with the existing object', async () => {
      const object = talk();
      expect(await object.watch('')).toEqual([INITIAL_END]);
      await object.create();
      expect(await object.watch('')).toEqual(['ADDED', INITIAL_END]);
      expect(await object.watch('&resourceVersion=0')).toEqual(['ADDED', INITIAL_END]);
    });

    test('a watch from a version delivers the later events of this object only', async () => {
      const object = talk();
      const { version } = await object.create();
      await object.patch({ data: { ring: base64('x') } });
      const events = await object.watch(`&resourceVersion=${version}`, async () => {
        await talk().create();
        await object.patch({ data: { ring: base64('y') } });
        await object.remove();
        await object.create();
      });
      expect(events).toEqual(['MODIFIED', 'MODIFIED', 'DELETED', 'ADDED']);
    });

    test('a watch from a text that is not a version is answered with a server error', async () => {
      expect(await talk().watch('&resourceVersion=abc')).toEqual(['500']);
    });

    test('a watch of an object in a missing namespace delivers no change', async () => {
      const { length } = (await talk('secrets', 'nowhere').watch('')).filter((event) => event !== INITIAL_END);
      expect(length).toBe(0);
    });

    test('a watch from a version that the server has forgotten ends with the event ERROR 410 Expired', async () => {
      const object = talk();
      const { version } = await object.create();
      await object.patch({ data: { ring: base64('x') } });
      await api?.compact();
      expect(await object.watch(`&resourceVersion=${version}`)).toEqual(['ERROR 410 Expired']);
    });
  });
});
