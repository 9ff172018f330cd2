import type { RingStoreErrorKind } from '@sealring/core';
import { type StoreFailure, vendorError } from '@sealring/core/adapter';
import { field } from './requests.ts';

/** `not-found`: the object does not exist. `conflict`: another write won. */
export interface Failure extends StoreFailure<Exclude<RingStoreErrorKind, 'absent'> | 'not-found' | 'conflict'> {
  /** The revision of stored content that is not a document. */
  readonly revision?: string;
}

/** A failure that has this meaning only with one status. */
interface Row extends Failure {
  readonly status: number;
}

const DENIED =
  'the API server refused the request: check the permissions of the service account, and the quotas of the namespace';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const REQUEST = 'the API server does not accept the request: check the namespace and the name';
const BUSY = 'the API server cannot serve requests at the moment';
const NOBODY = 'no API server for Secrets and ConfigMaps answers at this address (status 404)';
const TOO_LONG = 'the object would be larger than Kubernetes allows';

/**
 * Maps the reason of a `Status` to its meaning.
 *
 * Source: `StatusReason` in k8s.io/apimachinery/pkg/apis/meta/v1/types.go, Kubernetes 1.34.
 */
export const ERROR_TABLE: Readonly<Record<string, Row>> = Object.freeze({
  AlreadyExists: { kind: 'conflict', detail: 'the object exists', status: 409 },
  Conflict: { kind: 'conflict', detail: 'another version is stored', status: 409 },

  Unauthorized: { kind: 'denied', detail: CREDENTIALS, status: 401 },
  Forbidden: { kind: 'denied', detail: DENIED, status: 403 },
  BadRequest: { kind: 'denied', detail: REQUEST, status: 400 },
  MethodNotAllowed: { kind: 'denied', detail: REQUEST, status: 405 },
  NotAcceptable: { kind: 'denied', detail: REQUEST, status: 406 },
  UnsupportedMediaType: { kind: 'denied', detail: REQUEST, status: 415 },

  RequestEntityTooLarge: { kind: 'too-large', detail: TOO_LONG, status: 413 },

  Gone: { kind: 'unavailable', detail: BUSY, status: 410 },
  Expired: { kind: 'unavailable', detail: BUSY, status: 410 },
  TooManyRequests: { kind: 'unavailable', detail: BUSY, status: 429 },
  InternalError: { kind: 'unavailable', detail: BUSY, status: 500 },
  ServiceUnavailable: { kind: 'unavailable', detail: BUSY, status: 503 },
  Timeout: { kind: 'unavailable', detail: BUSY, status: 504 },
  ServerTimeout: { kind: 'unavailable', detail: BUSY, status: 500 },
  StoreReadError: { kind: 'unavailable', detail: BUSY, status: 500 },
} satisfies Record<string, Row>);

/** The resource that an answer is about. The answer must name it, because a proxy in between also answers 404. */
export interface Subject {
  /** `secrets` or `configmaps`. */
  readonly resource: string;
  readonly name: string;
}

/**
 * Classifies an unsuccessful answer by its status and the `Status` object in its body, never by a message. A
 * reason in the table decides, if the status is the one in its row; otherwise the status decides. Anything else is
 * `unavailable`.
 */
export function failureOf(status: number, body: unknown, subject: Subject): Failure {
  const ours = field(body, 'kind') === 'Status' ? body : undefined;
  const [reason, details] = [field(ours, 'reason'), field(ours, 'details')];
  if (status === 404) return notFound(reason, details, subject);
  if (reason === 'Invalid' && status === 422) return invalid(details);
  const found = vendorError.findRow(ERROR_TABLE, [reason], (row) => row.status === status);
  if (found !== undefined) {
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  }
  if (status === 401) return { kind: 'denied', detail: `${CREDENTIALS} (status 401)` };
  if (status === 403) return { kind: 'denied', detail: `${DENIED} (status 403)` };
  if (status === 413) return { kind: 'too-large', detail: `${TOO_LONG} (status 413)` };
  return vendorError.unexplained(status);
}

function notFound(reason: unknown, details: unknown, { resource, name }: Subject): Failure {
  if (reason !== 'NotFound') return { kind: 'unavailable', detail: NOBODY };
  if (field(details, 'kind') === resource && field(details, 'name') === name) {
    return { kind: 'not-found', detail: 'the object does not exist (NotFound)', serviceCode: 'NotFound' };
  }
  if (field(details, 'kind') === 'namespaces') {
    return { kind: 'denied', detail: 'the namespace does not exist (NotFound)', serviceCode: 'NotFound' };
  }
  return { kind: 'unavailable', detail: NOBODY, serviceCode: 'NotFound' };
}

/**
 * The failure for a change that the API server's own rules forbid. For the reasons of causes, see `CauseType` in the
 * same source file.
 */
function invalid(details: unknown): Failure {
  const causes = [field(details, 'causes')].flat();
  const has = (name: string, value: string): boolean => causes.some((cause) => field(cause, name) === value);
  const serviceCode = 'Invalid';
  // The answer to a patch if the object with this `uid` was deleted, and another object has its name and its version.
  if (has('field', 'metadata.uid')) return { kind: 'conflict', detail: 'another object is stored', serviceCode };
  if (has('reason', 'FieldValueTooLong')) return { kind: 'too-large', detail: `${TOO_LONG} (Invalid)`, serviceCode };
  if (has('reason', 'FieldValueForbidden')) {
    return { kind: 'read-only', detail: 'the object is immutable, and cannot be changed (Invalid)', serviceCode };
  }
  return { kind: 'denied', detail: `${REQUEST} (Invalid)`, serviceCode };
}

/** Classifies a rejection: there was no answer, or no credentials were available. Never throws. */
export function classify(error: unknown): Failure {
  return (
    vendorError.unreachable(error, 'the API server') ?? {
      kind: 'unavailable',
      detail: 'the call failed: no connection, or no credentials',
    }
  );
}
