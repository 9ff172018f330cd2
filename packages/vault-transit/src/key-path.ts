/** A transit key, and where to call it. */
export interface TransitKey {
  /**
   * Namespace, mount, `keys` and name: `team/transit/keys/payments`, as in `bao read`. It is the same at every address
   * of a Vault: a fleet may reach one Vault at several addresses.
   */
  readonly path: string;
  /** Namespace and mount: `team/transit`. */
  readonly mount: string;
  readonly name: string;
}

const SEGMENT = String.raw`[A-Za-z0-9_](?:[A-Za-z0-9_.\-]{0,126}[A-Za-z0-9_])?`;
const SEGMENTS = `${SEGMENT}(?:/${SEGMENT}){0,15}`;
const VERSION = '[1-9][0-9]{0,9}';

/** A key name that the transit engine accepts: up to 128 characters. */
export const KEY_NAME: RegExp = new RegExp(`^${SEGMENT}$`);
/** A mount or a namespace: up to 16 parts, none of which is `.` or `..`, because a URL would resolve those. */
export const MOUNT: RegExp = new RegExp(`^${SEGMENTS}/?$`);

const KEY_PATH = new RegExp(`^(?<mount>${SEGMENTS})/keys/(?<name>${SEGMENT})$`);
const KEY_ID = new RegExp(`^(?<path>.+):v(?<version>${VERSION})$`);
const CIPHERTEXT = new RegExp(`^vault:v(?<version>${VERSION}):(?<body>[A-Za-z0-9+/]+={0,2})$`);

/**
 * The minimum length of a ciphertext of a data key: the nonce of AES-GCM or ChaCha20-Poly1305 (12 bytes), the data key
 * (32) and the tag (16).
 */
const LEAST_CIPHERTEXT_BYTES = 60;

/** @param namespace - Empty for the root namespace. */
export function transitKey(namespace: string, mount: string, name: string): TransitKey {
  const whole = [namespace, mount].filter((part) => part !== '').join('/');
  return Object.freeze({ path: `${whole}/keys/${name}`, mount: whole, name });
}

/** Reads `team/transit/keys/payments`; undefined for anything else. */
export function parseKeyPath(path: string): TransitKey | undefined {
  const parts = KEY_PATH.exec(path)?.groups as Pick<TransitKey, 'mount' | 'name'> | undefined;
  return parts && Object.freeze({ path, ...parts });
}

/** The `keyId` of a wrapped key: the key's path and the exact version, `team/transit/keys/payments:v3`. */
export function keyIdOf(key: TransitKey, version: string): string {
  return `${key.path}:v${version}`;
}

/** Parses a `keyId`; undefined for anything that {@link keyIdOf} does not return. */
export function parseKeyId(keyId: string): { readonly path: string; readonly version: string } | undefined {
  return KEY_ID.exec(keyId)?.groups as { readonly path: string; readonly version: string } | undefined;
}

/**
 * The version in a ciphertext of the transit engine, `vault:v3:…`; undefined for any other form. Vault itself is less
 * strict: it accepts `v0`, `v03` and `v+3` for other versions, and base64 in more than one form.
 */
export function versionOf(ciphertext: string): string | undefined {
  const parts = CIPHERTEXT.exec(ciphertext)?.groups;
  const bytes = bytesOf(parts?.['body']);
  return bytes === undefined || bytes.length < LEAST_CIPHERTEXT_BYTES ? undefined : parts?.['version'];
}

/** Decodes canonical base64, with its padding; undefined for anything else. */
export function bytesOf(base64: unknown): Uint8Array | undefined {
  if (typeof base64 !== 'string') return undefined;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : undefined;
}
