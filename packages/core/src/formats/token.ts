/**
 * Characters a token may have: 256 KiB. Checked before anything is decoded, so a token that an attacker chose costs a
 * comparison of lengths and no more.
 */
export const MAX_TOKEN_LENGTH: number = 256 * 1024;

/**
 * Decodes canonical base64url (RFC 4648 section 5, no padding); undefined for anything else. Canonical means that the
 * bytes encode to exactly this text again: Node's decoder skips foreign characters, takes the standard alphabet too and
 * ignores the unused bits of the last character, so one token would have many spellings.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  // One character alone holds no byte; every other non-canonical text fails the comparison.
  if (text.length % 4 === 1) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
