/** The codes of the error classes that this package defines. */
export const MCP_ERROR_CODES = ['ERR_CODEC_FAILED', 'ERR_INVALID_CLAIM', 'ERR_SINGLE_USE_STORE_FULL'] as const;

/** One of {@link MCP_ERROR_CODES}. */
export type McpErrorCode = (typeof MCP_ERROR_CODES)[number];

/** An error of any class that this package defines; `code` identifies the class. */
export type McpError = CodecFailedError | InvalidClaimError | SingleUseStoreFullError;

const ERRORS_PAGE = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';

// Registered globally, so that every copy of this package in a process has the same symbol.
const BRAND = Symbol.for('@sealring/mcp/error');

/**
 * Makes `instanceof errorClass` also true for errors of other copies of this package. Classes that extend `errorClass`
 * keep the default behaviour.
 */
function brand(errorClass: { readonly prototype: Error }, code: McpErrorCode): void {
  Object.defineProperty(errorClass.prototype, BRAND, { value: code });
  Object.defineProperty(errorClass, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== errorClass) return Function.prototype[Symbol.hasInstance].call(this, value);
      return value instanceof Error && Reflect.get(value, BRAND) === code;
    },
  });
}

/** Whether `value` is an error of this package, or of another copy of it in the same process. */
export function isMcpError(value: unknown): value is McpError {
  return value instanceof Error && BRAND in value;
}

/**
 * A codec failed in a way that its interface does not provide for. The message names the class of the error that
 * the codec threw, and quotes none of its text, which may contain a secret.
 */
export class CodecFailedError extends Error {
  override readonly name = 'CodecFailedError';
  readonly code = 'ERR_CODEC_FAILED';

  /** URL of the documentation for this error. */
  readonly help: string = `${ERRORS_PAGE}#codecfailederror`;

  static {
    brand(this, 'ERR_CODEC_FAILED');
  }
}

/** The claims of an access token that `authInfoOf` reads. */
export type AccessTokenClaim = 'client_id' | 'azp' | 'sub' | 'iss' | 'exp' | 'scope' | 'scp';

/** A claim of an access token has the wrong type: `claim` names it. The message does not quote its value. */
export class InvalidClaimError extends Error {
  override readonly name = 'InvalidClaimError';
  readonly code = 'ERR_INVALID_CLAIM';
  readonly claim: AccessTokenClaim;

  /** URL of the documentation for this error. */
  readonly help: string = `${ERRORS_PAGE}#invalidclaimerror`;

  constructor(claim: AccessTokenClaim, expected: string) {
    super(`the claim "${claim}" must be ${expected}`);
    this.claim = claim;
  }

  static {
    brand(this, 'ERR_INVALID_CLAIM');
  }
}

/** The single-use store is full, and no token in it has expired, so a further token is refused. */
export class SingleUseStoreFullError extends Error {
  override readonly name = 'SingleUseStoreFullError';
  readonly code = 'ERR_SINGLE_USE_STORE_FULL';

  /** URL of the documentation for this error. */
  readonly help: string = `${ERRORS_PAGE}#singleusestorefullerror`;

  static {
    brand(this, 'ERR_SINGLE_USE_STORE_FULL');
  }
}
