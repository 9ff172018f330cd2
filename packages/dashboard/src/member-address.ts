/** Members that one page asks. */
export const MAX_MEMBERS: number = 32;

/**
 * What an address must be to be that of a member's page of metrics: `be an address that …`; undefined where it is one.
 * The address is never repeated: it may be a secret on a command line.
 */
export function refusalOfMember(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return 'be an address that starts with http:// or https://';
  }
  const { username, password, search, hash } = url;
  return [username, password, search, hash].every((part) => part === '')
    ? undefined
    : 'have no user, password, query or fragment in it';
}
