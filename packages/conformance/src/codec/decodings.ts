/** Bytes that a token may stand for: whole, and each part of it, by the usual encodings. */
export function decodings(token: string): readonly Uint8Array[] {
  const parts = [token, ...token.split(/[.~]/), token.replace(/^[^.]*\./, '')];
  return parts.flatMap((part) => [
    Buffer.from(part, 'base64url'),
    Buffer.from(part, 'hex'),
    Buffer.from(part, 'latin1'),
  ]);
}
