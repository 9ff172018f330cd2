import { URL_SAFE } from '../bytes.ts';

export const CHARACTERS: readonly string[] = Array.from(URL_SAFE);

/** The parts of a token that encode bytes, each with a function that replaces its bytes. */
export function encodedParts(
  token: string,
): readonly { readonly bytes: Buffer; readonly put: (bytes: Uint8Array) => string }[] {
  const parts = token.split(/([.:~$])/);
  return parts.flatMap((part, i) =>
    (['hex', 'base64url'] as const)
      .map((encoding) => ({
        bytes: Buffer.from(part, encoding),
        put: (bytes: Uint8Array) => parts.with(i, Buffer.from(bytes).toString(encoding)).join(''),
      }))
      .filter(({ bytes, put }) => bytes.length > 0 && put(bytes) === token)
      .slice(0, 1),
  );
}

/** The parts of a token that are JSON objects, plain or encoded. */
export function jsonParts(token: string): readonly { readonly part: string; readonly put: (json: string) => string }[] {
  const whole = { part: token, put: (json: string) => json };
  const inner = encodedParts(token).map(({ bytes, put }) => ({
    part: bytes.toString('utf8'),
    put: (json: string) => put(Buffer.from(json)),
  }));
  return [whole, ...inner].filter(({ part }) => {
    try {
      return /^{.*}$/s.test(part) && typeof JSON.parse(part) === 'object';
    } catch {
      return false;
    }
  });
}

/** A token split at each of its separators. */
export function divisions(token: string): readonly { readonly parts: readonly string[]; readonly separator: string }[] {
  return ['.', ':', '~', '$', '-', '_']
    .map((separator) => ({ parts: token.split(separator), separator }))
    .filter(({ parts }) => parts.length > 1);
}

/** The forms of a token in which one of its parts is replaced by one of the texts. */
export function* partsReplaced(
  token: string,
  texts: readonly string[],
): Generator<readonly [form: string, what: string]> {
  for (const { parts, separator } of divisions(token)) {
    for (const i of parts.keys()) {
      for (const one of texts) yield [parts.with(i, one).join(separator), `with ${JSON.stringify(one)} as part ${i}`];
    }
  }
}

export function replaced(token: string, at: number, by: string): string {
  return token.slice(0, at) + by + token.slice(at + 1);
}
