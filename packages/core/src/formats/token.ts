/**
 * Maximum number of characters in a token: 262 144. Checked before anything is decoded, so that an overlong token from
 * an attacker costs only a comparison of lengths.
 */
export const MAX_TOKEN_LENGTH: number = 256 * 1024;

/**
 * Decodes canonical base64url (RFC 4648 section 5, no padding); undefined for anything else. Canonical means that the
 * bytes encode to exactly this text again. Node's decoder also accepts the standard alphabet, skips foreign characters
 * and ignores the unused bits of the last character, so one token would have many spellings without this check.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return isCanonicalBase64url(text, bytes.length) ? bytes : undefined;
}

const BEYOND_LATIN1 = /[\u0100-\uffff]/;
/** The last characters of a group of two, or of three, whose unused bits are zero. */
const LAST_OF_TWO = 'AQgw';
const LAST_OF_THREE = 'AEIMQUYcgkosw048';

/**
 * Whether text that Node's decoder decoded to `length` bytes is the canonical base64url of these bytes. Encoding them
 * again would also answer this, but would make an unseal a tenth slower. The decoder skips unknown characters, so if it
 * returned as many bytes as the text can encode, it treated every character as a digit. Outside the alphabet, it also
 * treats as digits the `+` and `/` of the standard alphabet and, on some versions, a character beyond Latin-1 whose low
 * byte is a digit.
 */
export function isCanonicalBase64url(text: string, length: number): boolean {
  if (length !== Math.floor((text.length * 3) / 4)) return false;
  if (text.includes('+') || text.includes('/') || BEYOND_LATIN1.test(text)) return false;
  switch (text.length % 4) {
    case 0:
      return true;
    case 1:
      return false;
    case 2:
      return LAST_OF_TWO.includes(text.charAt(text.length - 1));
    default:
      return LAST_OF_THREE.includes(text.charAt(text.length - 1));
  }
}
