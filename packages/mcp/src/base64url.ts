/**
 * Decodes canonical base64url without padding; undefined for anything else. Node's decoder skips foreign characters and
 * ignores unused bits, so one token would otherwise have many spellings.
 */
export function canonicalBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
