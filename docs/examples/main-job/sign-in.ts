import type { AuthInfo } from '@modelcontextprotocol/server';

/** The two people of the story. They use the same app, so the OAuth client alone does not distinguish them. */
export const accessTokens = { ada: 'token-of-ada', mallory: 'token-of-mallory' } as const;

/**
 * A toy. A real server verifies a signed access token of its authorization server, and takes `sub` and `iss` from there;
 * `verifyBearerToken` of the SDK is the place to begin.
 */
export function signIn(authorization: string | undefined): AuthInfo | undefined {
  const person = Object.entries(accessTokens).find(([, token]) => authorization === `Bearer ${token}`)?.[0];
  if (person === undefined) return undefined;
  return {
    token: `token-of-${person}`,
    clientId: 'shop-app',
    scopes: ['refunds'],
    extra: { iss: 'https://login.example', sub: person },
  };
}
