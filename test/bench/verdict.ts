export interface Verdict {
  readonly law: string;
  readonly limit: number;
  readonly measured: number;
  readonly met: boolean;
}
