// @boundaries-ignore an adversary forges documents with the core's own code
import { sealSealring } from '../../../packages/core/src/formats/sealring.ts';
// @boundaries-ignore an adversary forges documents with the core's own code
import type { DataKey } from '../../../packages/core/src/keys/data-key.ts';
import type { Dice } from '../dice.ts';

/** A token that a holder of the data key can make at any time. */
export function forge(key: DataKey, dice: Dice): string {
  const [salt, nonce] = [new Uint8Array(18), new Uint8Array(12)];
  dice.source(salt);
  dice.source(nonce);
  return sealSealring(key.deriveTokenKey(salt), nonce, new Uint8Array(3), new Uint8Array(16));
}

const ALPHABET = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');

/** A forged token: well formed or not, with an unknown key id or one of the ring. */
export function junkToken(dice: Dice, genuine: string | undefined): string {
  const text = (length: number): string => Array.from({ length }, () => dice.pick(ALPHABET)).join('');
  if (genuine !== undefined && dice.chance(0.3)) {
    const at = 4 + Math.floor(dice.uniform() * (genuine.length - 4));
    return `${genuine.slice(0, at)}${dice.pick(ALPHABET)}${genuine.slice(at + 1)}`;
  }
  if (genuine !== undefined && dice.chance(0.2)) return genuine.slice(0, 16) + text(88);
  return dice.pick([`sr1.${text(100)}`, `sr1.${text(100)}`, `v1.${text(80)}`, text(40), '', `sr1.${text(12)}`]);
}
