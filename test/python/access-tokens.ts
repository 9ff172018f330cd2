import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** An authorization server: it signs access tokens (RS256), and verifies its own. */
export class AccessTokens {
  readonly publicKey: string;
  readonly #privateKey: KeyObject;

  constructor() {
    const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
    this.#privateKey = pair.privateKey;
    this.publicKey = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  }

  issue(claims: object): string {
    const encoded = [{ alg: 'RS256', typ: 'JWT' }, claims].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    const signed = encoded.join('.');
    return `${signed}.${sign('sha256', Buffer.from(signed), this.#privateKey).toString('base64url')}`;
  }

  /** The claims of an access token, or undefined for one of another issuer. */
  claimsOf(token: string): Record<string, unknown> | undefined {
    const [header = '', payload = '', signature = ''] = token.split('.');
    const key = createPublicKey(this.publicKey);
    const isOurs = verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'));
    return isOurs ? JSON.parse(Buffer.from(payload, 'base64url').toString()) : undefined;
  }
}
