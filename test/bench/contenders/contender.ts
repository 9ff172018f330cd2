/** A way to protect a state. Both ends take and return the same text. */
export interface Contender {
  /** Its description in the table. */
  readonly note: string;
  /** Synchronous, or a promise: the time until the result counts. */
  seal(payload: Buffer, text: string): unknown;
  unseal(sealed: unknown): unknown;
  /** Length on the wire of a result of {@link seal}, in characters or bytes. */
  lengthOf(sealed: unknown): number;
  /** Whether a result of {@link unseal} is the payload. */
  isPayload(opened: unknown, payload: Buffer, text: string): boolean;
  close?(): Promise<void>;
}

export const lengthOfText = (sealed: unknown): number => String(sealed).length;

export function isBytes(opened: unknown, payload: Buffer): boolean {
  return opened instanceof Uint8Array && payload.equals(opened);
}
