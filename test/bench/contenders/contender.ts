/** What a user could protect a state with. Both ends get and give the same text. */
export interface Contender {
  /** What it is, for whoever reads the table. */
  readonly note: string;
  /** Synchronous, or a promise: what is measured is the time until the answer is there. */
  seal(payload: Buffer, text: string): unknown;
  unseal(sealed: unknown): unknown;
  /** Characters or bytes that go over the wire, of what {@link seal} gave. */
  lengthOf(sealed: unknown): number;
  /** Whether what {@link unseal} gave is the payload. */
  isPayload(opened: unknown, payload: Buffer, text: string): boolean;
  close?(): Promise<void>;
}

export const lengthOfText = (sealed: unknown): number => String(sealed).length;

export function isBytes(opened: unknown, payload: Buffer): boolean {
  return opened instanceof Uint8Array && payload.equals(opened);
}
