/** A key as a stored text names it. None of it is authenticated. */
export interface StoredKey {
  readonly id: string;
  readonly created: string;
  readonly activates: string;
  readonly sealsUntil: string;
  readonly opensUntil: string;
  readonly vouchers: Readonly<Record<string, string>>;
  readonly revoked?: { readonly at: string; readonly by: Readonly<Record<string, string>> };
}

/** The keys of a stored document, as far as it can be parsed: in this world any text may be stored. */
export function storedKeys(document: string | undefined): readonly StoredKey[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(document ?? '{}');
  } catch {
    return [];
  }
  if (typeof parsed !== 'object' || parsed === null || !('keys' in parsed) || !Array.isArray(parsed.keys)) return [];
  return parsed.keys.filter((key): key is StoredKey => {
    return (
      typeof key === 'object' &&
      key !== null &&
      'id' in key &&
      typeof key.id === 'string' &&
      'activates' in key &&
      typeof key.activates === 'string'
    );
  });
}

/** The keys of a document, for a trace: `!` is revoked. */
export function inShort(document: string): string {
  const keys = storedKeys(document);
  if (keys.length === 0) return `${document.length} characters without a key`;
  const ids = keys.map(
    (key) => `${key.id.slice(0, 4)}${key.revoked === undefined ? '' : '!'}@${key.activates.slice(8, 16)}`,
  );
  return ids.slice(0, 12).join(' ') + (ids.length > 12 ? ` and ${ids.length - 12} more` : '');
}
