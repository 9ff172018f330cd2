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

interface Pair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** By the version's id. Making a pair is slow, and no target sees the keys of another. */
const pairs = new Map<string, Pair>();

export class ZooKeyVersion {
  readonly id: string;
  readonly secret: Buffer = randomBytes(32);

  constructor(id: string) {
    this.id = id;
  }

  /** RSA, for services that wrap with a public key. */
  get pair(): Pair {
    const pair = pairs.get(this.id) ?? generateKeyPairSync('rsa', { modulusLength: 2048 });
    pairs.set(this.id, pair);
    return pair;
  }
}
