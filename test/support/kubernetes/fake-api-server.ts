import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer, json } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/*
 * The part of a Kubernetes API server that a ring uses: Secrets and ConfigMaps of the namespaces `default` and
 * `sealring`, optimistic locking, merge patches, watches with bookmarks and 410, the rules for sizes and immutable
 * objects, and permissions by bearer token. test/stores/kubernetes-api.test.ts makes the same calls to it and to
 * kube-apiserver, and expects the same answers.
 */

/** The `Status` of kube-apiserver 1.34 for a failed request. */
interface Refusal {
  readonly code: number;
  /** Missing if the server itself failed. */
  readonly reason?: string;
  readonly details?: object;
}

interface Held {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: Record<string, unknown>;
}

interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly held: Held;
}

/** `verb resource/name`, or `*` for everything: the permissions of a token in the namespace `sealring`. */
export type Permissions = readonly string[];

const KINDS: Readonly<Record<string, string>> = { secrets: 'Secret', configmaps: 'ConfigMap' };
const NAMESPACES = ['default', 'sealring'];
const MAX_DATA_BYTES = 1_048_576;
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;
const BOOKMARK_MS = 60_000;

/** The state of one cluster. */
export class FakeCluster {
  readonly permissions = new Map<string, Permissions>([['admin', ['*']]]);
  readonly #objects = new Map<string, Held>();
  readonly #changes: Change[] = [];
  readonly #watches = new Set<() => void>();
  readonly #bookmarks = new Set<() => void>();
  readonly #watchers = new Set<(change: Change) => void>();
  #version = 100;
  #oldest = 0;

  /** Forgets all changes up to now, as etcd's compaction does: a watch from before is answered with 410. */
  compact(): void {
    this.#oldest = this.#version;
    this.#changes.length = 0;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (url.pathname === '/readyz') {
      response.end('ok');
      return;
    }
    if (url.pathname === '/_fake/compact') {
      this.compact();
      response.end();
      return;
    }
    if (url.pathname === '/_fake/bookmarks') {
      for (const bookmark of this.#bookmarks) bookmark();
      response.end();
      return;
    }
    if (url.pathname === '/_fake/end-watches') {
      for (const end of this.#watches) end();
      response.end();
      return;
    }
    if (url.pathname === '/_fake/permissions') {
      for (const [token, allowed] of Object.entries((await json(request)) as Record<string, Permissions>)) {
        this.permissions.set(token, allowed);
      }
      response.end();
      return;
    }
    const [, namespace = '', resource = '', name] =
      /^\/api\/v1\/namespaces\/([^/]+)\/(secrets|configmaps)(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
    if (resource === '') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
      return;
    }
    const watched = url.searchParams.get('watch') === 'true';
    const selected = /^metadata\.name=(.+)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
    const verb = watched ? 'watch' : verbOf(request.method, name);
    const refusal = this.#refusalOf(
      request,
      verb,
      namespace,
      resource,
      verb === 'create' ? undefined : (name ?? selected),
    );
    if (refusal !== undefined) send(response, refusal.code, statusOf(refusal));
    else if (watched) await this.#watch(response, url, { namespace, resource, name: selected });
    else await this.#change(request, response, { namespace, resource, name });
  }

  #refusalOf(
    request: IncomingMessage,
    verb: string,
    namespace: string,
    resource: string,
    name: string | undefined,
  ): Refusal | undefined {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const allowed = this.permissions.get(token);
    if (allowed === undefined) return { code: 401, reason: 'Unauthorized' };
    if (allowed.includes('*')) return undefined;
    const isAllowed = namespace === 'sealring' && allowed.includes(`${verb} ${resource}/${name ?? ''}`);
    return isAllowed
      ? undefined
      : { code: 403, reason: 'Forbidden', details: { ...(name && { name }), kind: resource } };
  }

  async #change(
    request: IncomingMessage,
    response: ServerResponse,
    place: { readonly namespace: string; readonly resource: string; readonly name: string | undefined },
  ): Promise<void> {
    if (request.method === 'GET' && place.name === undefined) {
      const items = [...this.#objects.values()].filter(
        ({ namespace, resource }) => namespace === place.namespace && resource === place.resource,
      );
      send(response, 200, { kind: 'List', apiVersion: 'v1', items: items.map(({ object }) => object) });
      return;
    }
    const body = request.method === 'GET' || request.method === 'DELETE' ? undefined : await readJson(request);
    if (body === 'too large') {
      send(response, 413, statusOf({ code: 413, reason: 'RequestEntityTooLarge' }));
      return;
    }
    const outcome = this.#outcomeOf(request.method ?? '', place, body);
    if ('code' in outcome) send(response, outcome.code, statusOf(outcome));
    else if (request.method === 'DELETE') send(response, 200, deleted(outcome));
    else send(response, request.method === 'POST' ? 201 : 200, outcome.object);
  }

  #outcomeOf(
    method: string,
    { namespace, resource, name: named }: { namespace: string; resource: string; name: string | undefined },
    body: Record<string, unknown> | undefined,
  ): Refusal | Held {
    const name = named ?? String(memberOf(memberOf(body, 'metadata'), 'name'));
    const key = `${namespace}/${resource}/${name}`;
    const old = this.#objects.get(key);
    const notFound = { code: 404, reason: 'NotFound', details: { name, kind: resource } };
    if (method === 'POST') {
      if (!NAMESPACES.includes(namespace)) {
        return { code: 404, reason: 'NotFound', details: { name: namespace, kind: 'namespaces' } };
      }
      if (old !== undefined) return { code: 409, reason: 'AlreadyExists', details: { name, kind: resource } };
      if (!isReadable(body ?? {}, resource)) return { code: 400, reason: 'BadRequest' };
      return this.#put(key, { namespace, resource, name }, body ?? {}, undefined);
    }
    if (old === undefined) return notFound;
    if (method === 'GET') return old;
    if (method === 'DELETE') {
      this.#objects.delete(key);
      this.#note('DELETED', { ...old, object: withVersion(old.object, ++this.#version) });
      return old;
    }
    return this.#patch(key, old, body ?? {});
  }

  #patch(key: string, old: Held, body: Record<string, unknown>): Refusal | Held {
    const wanted = memberOf(body, 'metadata');
    const given = memberOf(wanted, 'resourceVersion');
    const version = typeof given === 'string' ? given : '0';
    // A version that is not a 64-bit number is an internal error, and 0 is not a condition.
    if (!/^\d{1,19}$/.test(version)) return { code: 500 };
    const { name, resource } = old;
    if (version !== '0' && version !== memberOf(old.object['metadata'], 'resourceVersion')) {
      return { code: 409, reason: 'Conflict', details: { name, kind: resource } };
    }
    const invalid = (details: object, field: string): Refusal => ({
      code: 422,
      reason: 'Invalid',
      details: { ...details, causes: [{ reason: 'FieldValueInvalid', message: 'refused', field }] },
    });
    const uid = memberOf(wanted, 'uid');
    if (uid !== undefined && uid !== memberOf(old.object['metadata'], 'uid')) {
      return invalid({ name, kind: KINDS[resource] }, 'metadata.uid');
    }
    const next = merged(old.object, body);
    return isReadable(next, resource) ? this.#put(key, old, next, old) : invalid({}, 'patch');
  }

  #put(
    key: string,
    { namespace, resource, name }: Omit<Held, 'object'>,
    body: Record<string, unknown>,
    old: Held | undefined,
  ): Refusal | Held {
    const invalid = refusalOfData(body, resource, old?.object, name);
    if (invalid !== undefined) return invalid;
    if (old !== undefined && same(body, old.object)) return old;
    const metadata = {
      ...Object(body['metadata']),
      name,
      namespace,
      uid: old === undefined ? randomUUID() : memberOf(old.object['metadata'], 'uid'),
      creationTimestamp: '2026-01-01T00:00:00Z',
    };
    this.#version += 1;
    // Changes objects as an admission webhook might.
    const data = name.startsWith('mutated-') ? { data: { ring: 'b3RoZXI=' } } : {};
    const object = withVersion({ ...body, ...data, kind: KINDS[resource], apiVersion: 'v1', metadata }, this.#version);
    const held = { namespace, resource, name, object };
    this.#objects.set(key, held);
    this.#note(old === undefined ? 'ADDED' : 'MODIFIED', held);
    return held;
  }

  #note(type: Change['type'], held: Held): void {
    const change = { version: this.#version, type, held };
    this.#changes.push(change);
    for (const watcher of this.#watchers) watcher(change);
  }

  async #watch(
    response: ServerResponse,
    url: URL,
    { namespace, resource, name }: { namespace: string; resource: string; name: string | undefined },
  ): Promise<void> {
    const from = url.searchParams.get('resourceVersion') ?? '';
    if (!/^\d{0,19}$/.test(from)) {
      send(response, 500, statusOf({ code: 500 }));
      return;
    }
    const isWatched = ({ held }: Pick<Change, 'held'>): boolean =>
      held.namespace === namespace && held.resource === resource && (name === undefined || held.name === name);
    const tell = (type: string, object: unknown): void => void response.write(`${JSON.stringify({ type, object })}\n`);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (Number(from) > 0 && Number(from) < this.#oldest) {
      tell('ERROR', statusOf({ code: 410, reason: 'Expired' }));
      response.end();
      return;
    }
    const hasBookmarks = url.searchParams.get('allowWatchBookmarks') === 'true';
    const bookmark = (annotations?: object): void =>
      tell('BOOKMARK', { kind: KINDS[resource], metadata: { resourceVersion: String(this.#version), annotations } });
    if (Number(from) === 0) {
      for (const held of this.#objects.values()) if (isWatched({ held })) tell('ADDED', held.object);
      if (hasBookmarks) bookmark({ 'k8s.io/initial-events-end': 'true' });
    } else {
      for (const change of this.#changes) {
        if (change.version > Number(from) && isWatched(change)) tell(change.type, change.held.object);
      }
    }
    const watcher = (change: Change): void => {
      if (isWatched(change)) tell(change.type, change.held.object);
    };
    const minutely = (): void => bookmark();
    const bookmarks = setInterval(minutely, BOOKMARK_MS);
    if (hasBookmarks) this.#bookmarks.add(minutely);
    else clearInterval(bookmarks);
    this.#watchers.add(watcher);
    const ended = new AbortController();
    const end = (): void => ended.abort();
    response.once('close', end);
    this.#watches.add(end);
    const seconds = Number(url.searchParams.get('timeoutSeconds') ?? 1_800);
    await pause(seconds * 1_000, undefined, { signal: ended.signal }).catch(() => undefined);
    this.#watchers.delete(watcher);
    this.#watches.delete(end);
    clearInterval(bookmarks);
    this.#bookmarks.delete(minutely);
    response.end();
  }
}

function verbOf(method = '', name: string | undefined): string {
  const verbs: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };
  return verbs[method] ?? (name === undefined ? 'list' : 'get');
}

function statusOf({ code, reason, details }: Refusal): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'refused',
    reason,
    details,
    code,
  };
}

function deleted({ name, resource, object }: Held): object {
  const details = { name, kind: resource, uid: memberOf(object['metadata'], 'uid') };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown> | 'too large'> {
  const body = await buffer(request);
  // An answer before the end of the body would close the connection while the client still writes.
  return body.length > MAX_REQUEST_BYTES ? 'too large' : JSON.parse(body.toString());
}

/** Whether `data` has the type of the resource: text, in a Secret as base64. */
function isReadable(body: Record<string, unknown>, resource: string): boolean {
  const isBase64 = (value: string): boolean => Buffer.from(value, 'base64').toString('base64') === value;
  return Object.values(Object(body['data'])).every(
    (value) => typeof value === 'string' && (resource === 'configmaps' || isBase64(value)),
  );
}

function refusalOfData(
  body: Record<string, unknown>,
  resource: string,
  old: Record<string, unknown> | undefined,
  name: string,
): Refusal | undefined {
  const data = Object.entries((body['data'] ?? {}) as Record<string, string>);
  const isSecret = resource === 'secrets';
  const invalid = (reason: string, field: string): Refusal => ({
    code: 422,
    reason: 'Invalid',
    details: { name, kind: KINDS[resource], causes: [{ reason, message: 'refused', field }] },
  });
  const bytes = data.reduce((sum, [, value]) => sum + Buffer.from(value, isSecret ? 'base64' : 'utf8').length, 0);
  if (bytes > MAX_DATA_BYTES) return invalid('FieldValueTooLong', isSecret ? 'data' : '[]');
  if (old?.['immutable'] === true && !same(body['data'], old['data'])) return invalid('FieldValueForbidden', 'data');
  return undefined;
}

function merged(target: unknown, patch: unknown): Record<string, unknown> {
  const result: Record<string, unknown> = { ...Object(target) };
  for (const [name, value] of Object.entries(patch as Record<string, unknown>)) {
    if (value === null) delete result[name];
    else result[name] = typeof value === 'object' && !Array.isArray(value) ? merged(result[name] ?? {}, value) : value;
  }
  return result;
}

function withVersion(object: Record<string, unknown>, version: number): Record<string, unknown> {
  return { ...object, metadata: { ...Object(object['metadata']), resourceVersion: String(version) } };
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const cluster = new FakeCluster();
  const http = createServer((request, response) => {
    // A body that is not JSON.
    cluster.answer(request, response).catch(() => send(response, 400, statusOf({ code: 400, reason: 'BadRequest' })));
  });
  http.listen(Number(process.argv[2]), '127.0.0.1');
}
