/*
 * Resource names (Cloud KMS REST reference, v1: projects.locations.keyRings.cryptoKeys and …cryptoKeyVersions). Compared
 * literally: the service has one spelling for each key.
 */
const KEY = [
  // A domain-scoped project id has a colon, and its domain has dots.
  'projects/[a-z0-9][a-z0-9.:-]{0,127}',
  'locations/[a-z0-9-]{1,63}',
  'keyRings/[A-Za-z0-9_-]{1,63}',
  'cryptoKeys/[A-Za-z0-9_-]{1,63}',
].join('/');
const KEY_NAME = new RegExp(`^${KEY}$`);
const VERSION_NAME = new RegExp(`^(${KEY})/cryptoKeyVersions/[1-9][0-9]{0,18}$`);

/** The form of a key's name, for messages. */
export const KEY_NAME_FORM = 'projects/…/locations/…/keyRings/…/cryptoKeys/… (no version)';

/** Whether a text is the resource name of a CryptoKey. */
export function isKeyName(text: string): boolean {
  return KEY_NAME.test(text);
}

/** The name of the CryptoKey that a CryptoKeyVersion belongs to; undefined if the text is not a version's name. */
export function keyOfVersion(text: string): string | undefined {
  return VERSION_NAME.exec(text)?.[1];
}
