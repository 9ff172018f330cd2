import { randomUUID } from 'node:crypto';
import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { inject } from 'vitest';
import { type VaultTransitKeyWrapperOptions, vaultTransitKeyWrapper } from '../src/index.ts';

/** The OpenBao that all test files share. */
export const openbao = inject('openbao');
/** Skipped only if this machine cannot run it; under CI=true the set-up fails instead. */
export const hasOpenBao = openbao.address !== '';

export const context = {
  'sealring:ring': 'test',
  'sealring:purpose': 'data-key',
  'sealring:times': '2026-01-01T00:00:00Z/2026-01-02T00:00:00Z/2026-01-03T00:00:00Z/2026-01-04T00:00:00Z',
};

export function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i + 1);
}

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** One call of the HTTP API, as an operator makes it; returns the answer's `data`, or all of it if there is none. */
export async function operate(
  method: Method,
  path: string,
  body: object = {},
  token = openbao.token,
): Promise<unknown> {
  const response = await fetch(`${openbao.address}/v1/${path}`, {
    method,
    headers: { 'X-Vault-Token': token },
    ...(method !== 'GET' && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`openbao: ${method} ${path} answered ${response.status} ${text}`);
  const answer: unknown = text === '' ? {} : JSON.parse(text);
  return Object(answer).data ?? answer;
}

/** Creates a transit key for one test; returns its name. */
export async function newKey(options: object = {}, mount = 'transit'): Promise<string> {
  const name = `key-${randomUUID()}`;
  await operate('POST', `${mount}/keys/${name}`, options);
  return name;
}

export async function rotateKey(name: string): Promise<void> {
  await operate('POST', `transit/keys/${name}/rotate`);
}

/** Creates a token with one policy of these rules only. */
export async function newToken(
  policy: string,
  options: { namespace?: string; ttlSeconds?: number } = {},
): Promise<string> {
  const { namespace, ttlSeconds = 3600 } = options;
  const name = `policy-${randomUUID()}`;
  const at = namespace === undefined ? '' : `${namespace}/`;
  await operate('PUT', `${at}sys/policies/acl/${name}`, { policy });
  const rights = { policies: [name], no_default_policy: true, ttl: `${ttlSeconds}s` };
  const made = await operate('POST', `${at}auth/token/create`, rights);
  return String(Object(made).auth.client_token);
}

export type Wrapper = ReturnType<typeof vaultTransitKeyWrapper>;

/** A key wrapper with the root token by default. */
export function wrapperFor(keyId: string, options: Partial<VaultTransitKeyWrapperOptions> = {}): Wrapper {
  return vaultTransitKeyWrapper({ address: openbao.address, token: openbao.token, keyId, ...options });
}

/** Every call of a wrapper, for invariants that hold for both. */
export const CALLS: readonly [
  string,
  (keyWrapper: KeyWrapper, made: WrappedKey, options?: WrapOptions) => Promise<unknown>,
][] = [
  ['wrap', (keyWrapper, _, options = { context }) => keyWrapper.wrap(sampleKey(), options)],
  ['unwrap', (keyWrapper, made, options = { context }) => keyWrapper.unwrap(made, options)],
];

/** Vault's ciphertext in a wrapped key, and a wrapped key with another one. */
export function ciphertextOf({ wrapped }: WrappedKey): string {
  return Buffer.from(wrapped).toString('latin1');
}
export function withCiphertext(made: WrappedKey, ciphertext: string): WrappedKey {
  return { ...made, wrapped: new Uint8Array(Buffer.from(ciphertext, 'latin1')) };
}
