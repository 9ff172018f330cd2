/** Maximum number of members that a page can show. */
export const MAX_MEMBERS: number = 32;

/**
 * Why an address cannot be the address of a member's metrics, worded to follow “must”; undefined if it can be. The text
 * does not repeat the address, which may contain a secret.
 */
export function refusalOfMember(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:/.test(url.protocol)) {
    return 'be an address that starts with http:// or https://';
  }
  const { username, password, search, hash } = url;
  return [username, password, search, hash].every((part) => part === '')
    ? undefined
    : 'have no user, password, query or fragment';
}
