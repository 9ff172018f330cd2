import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { type Outcome, ringStorage } from '@sealring/core/adapter';
import type { Failure } from './error-table.ts';
import type { Settings } from './options.ts';
import { type Asked, field } from './requests.ts';

/** Where a ring is stored, and in what form. */
export type Place = Pick<Settings, 'namespace' | 'name' | 'kind' | 'key'>;

/** An entry in `binaryData`, where a ConfigMap keeps bytes that are not UTF-8. */
const BINARY: unique symbol = Symbol('binaryData');

/** The parts of a cluster object that a ring needs. */
export interface Held {
  /** The text in `data`, or {@link BINARY}; undefined if the object has no such entry. */
  readonly entry: string | typeof BINARY | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
}

/**
 * A UUID and a `resourceVersion`. Only a positive number that fits in 64 bits may reach the API server: a patch with
 * the version `0`, or without a version, has no condition, and the answer to any other text is 500.
 */
const REVISION = /^(?<uid>[0-9a-f-]{36})\/(?<resourceVersion>[1-9][0-9]{0,18})$/;

const NOT_UTF8: Failure = Object.freeze({ kind: 'corrupt', detail: 'the entry is not UTF-8' });

/** A condition that no object meets: objects have random uids, and etcd assigns the version 1 to none of them. */
export const NEVER_STORED: Omit<Held, 'entry'> = Object.freeze({
  uid: '00000000-0000-0000-0000-000000000000',
  resourceVersion: '1',
});

/**
 * An annotation whose value changes with every write, because a patch that changes nothing keeps the `resourceVersion`,
 * and two writers could then both win.
 */
const WRITE_ANNOTATION = 'sealring.dev/write';

/** The name of the kind in paths, permissions and the details of an error. */
export function resourceOf({ kind }: Place): string {
  return kind === 'Secret' ? 'secrets' : 'configmaps';
}

function collectionPath(place: Place): string {
  return `/api/v1/namespaces/${place.namespace}/${resourceOf(place)}`;
}

/** A request without a `resourceVersion`, so that the API server returns the most recent state, not a cached one. */
export function getRequest(place: Place): Asked {
  return { method: 'GET', path: `${collectionPath(place)}/${place.name}` };
}

/** Creates the object, but only if it does not exist. */
export function createRequest(place: Place, document: string): Asked {
  const { name, namespace, kind } = place;
  const metadata = {
    name,
    namespace,
    labels: { 'app.kubernetes.io/managed-by': 'sealring' },
    annotations: writeAnnotation(),
  };
  const data = dataOf(place, document);
  const type = kind === 'Secret' ? 'Opaque' : undefined;
  return { method: 'POST', path: collectionPath(place), body: { apiVersion: 'v1', kind, metadata, type, data } };
}

/** Replaces the entry, but only in this version of the object; the rest of the object is left unchanged. */
export function patchRequest(place: Place, document: string, { uid, resourceVersion }: Omit<Held, 'entry'>): Asked {
  const metadata = { uid, resourceVersion, annotations: writeAnnotation() };
  // A key may be in only one of `data` and `binaryData`.
  const removed = place.kind === 'ConfigMap' ? { binaryData: { [place.key]: null } } : {};
  return { ...getRequest(place), method: 'PATCH', body: { metadata, data: dataOf(place, document), ...removed } };
}

/**
 * The path for a watch from a version, or from any state if the version is empty. It selects only this object, because
 * permissions may be limited to it.
 */
export function watchPath(place: Place, resourceVersion: string, timeoutSeconds: number): string {
  const query = new URLSearchParams({
    watch: 'true',
    fieldSelector: `metadata.name=${place.name}`,
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(timeoutSeconds),
    resourceVersion,
  });
  return `${collectionPath(place)}?${query.toString()}`;
}

function writeAnnotation(): Readonly<Record<string, string>> {
  return { [WRITE_ANNOTATION]: randomUUID() };
}

function dataOf(place: Place, document: string): Readonly<Record<string, string>> {
  return { [place.key]: entryOf(document, place) };
}

/** The entry for a document. */
export function entryOf(document: string, { kind }: Place): string {
  return kind === 'Secret' ? Buffer.from(document).toString('base64') : document;
}

/** Checks that a body is the object. */
export function heldIn(body: unknown, place: Place): Outcome<Held, Failure> {
  const metadata = field(body, 'metadata');
  const isObject = field(body, 'kind') === place.kind && field(metadata, 'name') === place.name;
  const version = versionIn(`${String(field(metadata, 'uid'))}/${String(field(metadata, 'resourceVersion'))}`);
  if (!isObject || version === undefined) {
    return { failure: { kind: 'unavailable', detail: `the answer is not the ${place.kind}` } };
  }
  const entry = field(field(body, 'data'), place.key);
  if (entry !== undefined && typeof entry !== 'string') {
    return { failure: { kind: 'corrupt', detail: 'the entry is not text', revision: revisionOf(version) } };
  }
  const isBinary = field(field(body, 'binaryData'), place.key) !== undefined;
  return { answer: { entry: entry ?? (isBinary ? BINARY : undefined), ...version } };
}

/** The revision includes the `uid` because a cluster restored from a backup may repeat a `resourceVersion`. */
export function revisionOf({ uid, resourceVersion }: Omit<Held, 'entry'>): string {
  return `${uid}/${resourceVersion}`;
}

/** The uid and version in a revision; undefined for a text that was never a revision of this store. */
export function versionIn(revision: string): Omit<Held, 'entry'> | undefined {
  return REVISION.exec(revision)?.groups as Omit<Held, 'entry'> | undefined;
}

/** The document in an entry. */
export function documentIn(entry: string | typeof BINARY, { kind }: Place): Outcome<string, Failure> {
  if (entry === BINARY) return { failure: NOT_UTF8 };
  const bytes = kind === 'Secret' ? Buffer.from(entry, 'base64') : Buffer.from(entry);
  if (bytes.length > ringStorage.MAX_DOCUMENT_BYTES) return { failure: ringStorage.TOO_LARGE };
  if (bytes.length === 0) return { failure: { kind: 'corrupt', detail: 'the entry is empty' } };
  if (kind === 'Secret' && bytes.toString('base64') !== entry) {
    return { failure: { kind: 'corrupt', detail: 'the entry is not base64' } };
  }
  if (!isUtf8(bytes) || !entry.isWellFormed()) return { failure: NOT_UTF8 };
  return { answer: bytes.toString() };
}
