/** A refusal as Key Vault words it: status, `error.code`, and the reason in `error.innererror.code`. */
export interface VaultRefusal {
  readonly status: number;
  readonly code?: string | undefined;
  readonly innerCode?: string | undefined;
  readonly message?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent instead of the JSON body: an empty string, HTML of a proxy. */
  readonly body?: string | undefined;
}

/** Thrown inside the fake; its server turns it into an answer. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
  readonly refusal: VaultRefusal;

  constructor(refusal: VaultRefusal) {
    super(refusal.message ?? refusal.code ?? `HTTP ${refusal.status}`);
    this.refusal = refusal;
  }
}

/** The JSON body of a refusal. */
export function bodyOf({ code, innerCode, message = 'Refused by the fake.', body }: VaultRefusal): string {
  if (body !== undefined) return body;
  return JSON.stringify({
    error: { code, message, ...(innerCode !== undefined && { innererror: { code: innerCode } }) },
  });
}

// Statuses and codes: Azure Key Vault REST API reference and "REST API error codes". The live service was observed to
// return KeyDisabled (Azure/azure-sdk-for-python#45342), KeyOperationForbidden and ObjectIsBeingDeleted (the SDKs' own
// troubleshooting guides and test recordings); KeyExpired and KeyNotYetValid represent its answer for keys outside
// their dates, which is not documented.
export const REFUSALS = Object.freeze({
  unauthorized: { status: 401, code: 'Unauthorized', message: 'AKV10000: Request is missing a Bearer or PoP token.' },
  denied: { status: 403, code: 'Forbidden', innerCode: 'AccessDenied', message: 'The caller lacks the permission.' },
  disabled: { status: 403, code: 'Forbidden', innerCode: 'KeyDisabled', message: 'The key is disabled.' },
  expired: { status: 403, code: 'Forbidden', innerCode: 'KeyExpired', message: 'The key has expired.' },
  notYetValid: { status: 403, code: 'Forbidden', innerCode: 'KeyNotYetValid', message: 'The key is not valid yet.' },
  notPermitted: { status: 403, code: 'Forbidden', innerCode: 'KeyOperationForbidden', message: 'Not a key operation.' },
  badParameter: { status: 400, code: 'BadParameter', message: 'The request is not one that this key can serve.' },
  notFound: { status: 404, code: 'KeyNotFound', message: 'There is no such key in this vault.' },
  beingDeleted: {
    status: 409,
    code: 'Conflict',
    innerCode: 'ObjectIsBeingDeleted',
    message: 'Key is currently being deleted.',
  },
  throttled: {
    status: 429,
    code: 'Throttled',
    message: 'Too many requests.',
    headers: { 'retry-after': '10' },
  },
} satisfies Record<string, VaultRefusal>);
