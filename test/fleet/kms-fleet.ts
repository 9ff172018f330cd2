import { setTimeout as pause } from 'node:timers/promises';
import { KMSClient } from '@aws-sdk/client-kms';
import { createAwsKmsCodec } from '@sealring/aws-kms';
import {
  type CodecHealth,
  InvalidRequestState,
  type KmsCodec,
  memoryRing,
  type RingPolicy,
  type RingStore,
  SealUnavailableError,
} from '@sealring/core';

/** The pause between two rounds of sealing and unsealing. */
const ROUND_MS = 50;

/** A token, and the payload that it must unseal to. */
interface Sealed {
  readonly token: string;
  readonly payload: string;
}

/** The vendor's own client of an emulator. */
export function emulatorClient(endpoint: string): KMSClient {
  return new KMSClient({
    endpoint,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
}

/** One codec of the fleet, and its results. Times are milliseconds of its own clock. */
export class Observed {
  readonly name: string;
  readonly #codec: KmsCodec;
  readonly #client: KMSClient;
  lastSealMs = 0;
  lastOpenMs = 0;
  /** Why the last seal failed; undefined if it did not. */
  sealRefusal: string | undefined;
  /** Why it did not unseal a token of the last round; undefined if it unsealed all. */
  openRefusal: string | undefined;

  constructor(name: string, codec: KmsCodec, client: KMSClient) {
    this.name = name;
    this.#codec = codec;
    this.#client = client;
  }

  health(): CodecHealth {
    return this.#codec.health();
  }

  get lastKmsCheckMs(): number {
    return this.health().lastKmsCheck?.getTime() ?? 0;
  }

  refresh(): Promise<void> {
    return this.#codec.refresh();
  }

  seal(payload: string): Sealed | undefined {
    try {
      const token = this.#codec.seal(Buffer.from(payload));
      this.lastSealMs = Date.now();
      this.sealRefusal = undefined;
      return { token, payload };
    } catch (error) {
      if (!(error instanceof SealUnavailableError)) throw error;
      this.sealRefusal = error.reason;
      return undefined;
    }
  }

  /** Unseals without `prepare`, so only with keys that it holds already. */
  openAll(sealed: readonly Sealed[]): void {
    this.openRefusal = undefined;
    for (const { token, payload } of sealed) {
      try {
        const opened = Buffer.from(this.#codec.unseal(token)).toString();
        if (opened !== payload) throw new TypeError(`${this.name} unsealed ${opened} in place of ${payload}`);
        this.lastOpenMs = Date.now();
      } catch (error) {
        if (!(error instanceof InvalidRequestState)) throw error;
        this.openRefusal = error.reason;
      }
    }
  }

  async close(): Promise<void> {
    await this.#codec.close();
    this.#client.destroy();
  }
}

/** Two members and a reader on one ring, each with its own AWS client. */
export class KmsFleet {
  readonly all: readonly Observed[];
  readonly members: readonly Observed[];
  readonly #early: readonly Sealed[];
  #rounds = 0;

  private constructor(all: readonly Observed[]) {
    this.all = all;
    this.members = all.slice(0, 2);
    this.#early = this.members.flatMap((member) => member.seal(`${member.name}, before`) ?? []);
  }

  /** @param endpoints - addresses of the KMS for member 1, member 2 and the reader. */
  static async start(options: {
    readonly keyId: string;
    readonly policy: RingPolicy;
    readonly endpoints: readonly [string, string, string];
    readonly ring?: RingStore;
  }): Promise<KmsFleet> {
    const { endpoints, ring = memoryRing(), ...rest } = options;
    const all: Observed[] = [];
    for (const [i, endpoint] of endpoints.entries()) {
      const client = emulatorClient(endpoint);
      const role = i < 2 ? 'member' : 'reader';
      const codec = await createAwsKmsCodec({ ...rest, ring, role, client });
      all.push(new Observed(`${role} ${i + 1}`, codec, client));
    }
    return new KmsFleet(all);
  }

  /** Whether all members sealed, and every codec unsealed every token, new and old. */
  get works(): boolean {
    const seals = this.members.every((member) => member.sealRefusal === undefined);
    return seals && this.all.every((each) => each.openRefusal === undefined && each.health().status === 'ok');
  }

  /** Whether no codec unsealed all tokens of the last round. */
  get opensNothing(): boolean {
    return this.all.every((each) => each.openRefusal !== undefined);
  }

  /** Seals and unseals with every codec until `condition` holds. */
  async until(condition: () => boolean, seconds: number): Promise<void> {
    const end = performance.now() + seconds * 1_000;
    for (;;) {
      this.#round();
      if (condition()) return;
      if (performance.now() > end) throw new Error(`not within ${seconds} s: ${this.#told()}`);
      await pause(ROUND_MS);
    }
  }

  #round(): void {
    const round = ++this.#rounds;
    const fresh = this.members.flatMap((member) => member.seal(`${member.name}, round ${round}`) ?? []);
    for (const each of this.all) each.openAll([...this.#early, ...fresh]);
  }

  #told(): string {
    const told = this.all.map((each) => {
      const { status, lastError } = each.health();
      return `${each.name} ${status}, ${lastError?.source} ${lastError?.kind}, seal ${each.sealRefusal}, open ${each.openRefusal}`;
    });
    return told.join('; ');
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((each) => each.close()));
  }
}
