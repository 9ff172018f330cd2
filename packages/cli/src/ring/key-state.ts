import type { KeyState } from '@sealring/core';

/** Whether a key with this state seals or unseals, now or soon. */
export function isLive({ state }: { readonly state: KeyState }): boolean {
  return state === 'propagating' || state === 'active' || state === 'verify-only';
}
