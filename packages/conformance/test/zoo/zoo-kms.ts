import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

/** A KMS key of the test service, with its versions and state. */
export class ZooKey {
  readonly name: string;
  readonly versions: ZooKeyVersion[] = [];
  state: 'enabled' | 'disabled' | 'denied' = 'enabled';

  constructor(name: string) {
    this.name = name;
    this.rotate();
  }

  get current(): ZooKeyVersion {
    return this.versions.at(-1) as ZooKeyVersion;
  }

  rotate(): void {
    this.versions.push(new ZooKeyVersion(`${this.name}/${this.versions.length + 1}`));
  }
}

export class ZooKeyVersion {
  readonly id: string;
  readonly secret: Buffer = randomBytes(32);
  #pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** RSA, for services that wrap with a public key. */
  get pair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
    this.#pair ??= generateKeyPairSync('rsa', { modulusLength: 2048 });
    return this.#pair;
  }
}
