/**
 * The identifier of a key in a vault or a Managed HSM, with or without a version
 * (Azure Key Vault, "Object identifiers": `https://{vault}/keys/{name}[/{version}]`).
 */
export interface VaultKeyId {
  /** Scheme, host and port: `https://payments.vault.azure.net`. */
  readonly vaultUrl: string;
  readonly name: string;
  /** 32 hex digits; undefined if the identifier means every version of the key. */
  readonly version: string | undefined;
}

/** The identifier of one version. */
export interface VaultKeyVersionId extends VaultKeyId {
  readonly version: string;
}

// The name and the version become part of request paths, so only the listed characters are allowed.
const KEY_ID =
  /^(?<vault>https:\/\/[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)\/keys\/(?<name>[A-Za-z0-9-]{1,127})(?:\/(?<version>[0-9a-f]{32}))?$/;

/**
 * Parses a key identifier; returns undefined for anything else. Host names are converted to lower case, and port 443 is
 * dropped.
 */
export function parseKeyId(text: unknown): VaultKeyId | undefined {
  const groups = typeof text === 'string' ? KEY_ID.exec(text)?.groups : undefined;
  const { vault, ...id } = (groups ?? {}) as { vault?: string; name: string; version: string | undefined };
  return vault !== undefined && URL.canParse(vault) ? { vaultUrl: new URL(vault).origin, ...id } : undefined;
}

/** Parses the identifier of one version; returns undefined for anything else. */
export function parseVersionId(text: unknown): VaultKeyVersionId | undefined {
  const id = parseKeyId(text);
  return id?.version === undefined ? undefined : { ...id, version: id.version };
}

/** The identifier as text. */
export function formatKeyId({ vaultUrl, name, version }: VaultKeyId): string {
  return `${vaultUrl}/keys/${name}${version === undefined ? '' : `/${version}`}`;
}

/**
 * Whether `text` is the identifier of a version of the configured key, and of the configured version if there is one.
 * Key names are not case-sensitive.
 */
export function isOf({ vaultUrl, name, version }: VaultKeyId, text: unknown): boolean {
  const id = parseVersionId(text);
  return (
    id?.vaultUrl === vaultUrl &&
    id.name.toLowerCase() === name.toLowerCase() &&
    (version === undefined || version === id.version)
  );
}
