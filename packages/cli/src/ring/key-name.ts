import { hashedKeyId } from '@sealring/core';
import { keyFingerprint } from '@sealring/dashboard';

/** The name of a key, for commands, events, spans and the dashboard. Tokens and the ring document contain its id. */
export function keyName(id: string): string {
  return hashedKeyId(id);
}

/** The same text with the names of keys in place of their ids. */
export function withKeyNames(text: string, ids: readonly string[]): string {
  return ids.reduce((before, id) => before.replaceAll(id, keyName(id)), text);
}

/** Finds a key by its name, by its id, or by its number in the metric `sealring.ring.sealing_key.fingerprint`. */
export function keyNamed<Key extends { readonly id: string }>(text: string, keys: readonly Key[]): Key | undefined {
  return (
    keys.find(({ id }) => keyName(id) === text) ??
    keys.find(({ id }) => id === text) ??
    keys.find(({ id }) => String(keyFingerprint(id)) === text)
  );
}
