import { createHash } from 'node:crypto';

/** The principal that a state is bound to. */
export type PrincipalSource =
  /** A header that a gateway in front of the proxy sets, or `authorization`. */
  | { readonly header: string }
  /** The server has no users. */
  | null;

const AUTHORIZATION = 'authorization';

/** The source for the option `--principal-authorization`. */
export const BY_AUTHORIZATION: PrincipalSource = { header: AUTHORIZATION };

/**
 * Returns the function that determines the principal of a request; null for a server without users. Its results cannot
 * be mistaken for principals of access tokens, which are JSON arrays.
 *
 * @param report - Called for a request without a user, whose state is refused with the reason `principal binding error`.
 */
export function principalBinder(
  source: PrincipalSource,
  report: (message: string) => void,
): ((request: Request) => string) | null {
  if (source === null) return null;
  const { header } = source;
  return ({ headers }) => {
    const value = headers.get(header) ?? '';
    if (value === '') {
      report(`a request whose state belongs to a user has no header ${header}`);
      throw new TypeError('the request has no user');
    }
    return header === AUTHORIZATION ? `${header}:${hashOf(value)}` : `${header}:${value}`;
  };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
