import type { KeyWrapperControl, KeyWrapperTarget } from '@sealring/conformance';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { callOpenBao, type OpenBao } from '../../support/openbao.ts';
import { freePort } from '../../support/redis.ts';

/** Wrappers of two keys of one transit engine. */
export async function vaultTargetOf(
  name: string,
  [own, other]: readonly [string, string],
  access: { readonly address: string; readonly token: string },
): Promise<KeyWrapperTarget> {
  const closed = `http://127.0.0.1:${await freePort()}`;
  const start = (keyId: string, address = access.address) => ({
    keyWrapper: vaultTransitKeyWrapper({ ...access, address, keyId }),
  });
  return {
    name,
    create: () => start(own),
    createOtherKey: () => start(other),
    createUnreachable: () => start(own, closed),
  };
}

/** A real OpenBao, with the permissions of a member. */
export async function vaultTarget(openbao: OpenBao): Promise<KeyWrapperTarget> {
  const { control, token } = await vaultKeys(openbao);
  const target = await vaultTargetOf('Vault transit, OpenBao', ['own', 'other'], { address: openbao.address, token });
  return { ...target, control };
}

/** The keys `own` and `other`, the token of a member, and operations on the first key. */
export async function vaultKeys(openbao: OpenBao) {
  const operate = async (...[method, path, body]: [Parameters<typeof callOpenBao>[1], string, object?]) =>
    callOpenBao(openbao, method, path, body);
  await operate('POST', 'sys/mounts/transit', { type: 'transit' });
  for (const name of ['own', 'other']) await operate('POST', `transit/keys/${name}`, {});
  const permit = async (names: readonly string[]): Promise<void> => {
    const rights = names.flatMap((name) =>
      ['encrypt', 'decrypt'].map((verb) => `path "transit/${verb}/${name}" { capabilities = ["update"] }`),
    );
    await operate('PUT', 'sys/policies/acl/member', { policy: `${rights.join('\n')}\n` });
  };
  await permit(['own', 'other']);
  const made = await operate('POST', 'auth/token/create', { policies: ['member'], no_default_policy: true });
  const token = String(Object(made).auth.client_token);
  const control: KeyWrapperControl = {
    disable: async () => void (await operate('DELETE', 'transit/keys/own/soft-delete')),
    enable: async () => void (await operate('POST', 'transit/keys/own/soft-delete-restore')),
    deny: () => permit(['other']),
    allow: () => permit(['own', 'other']),
    rotate: async () => void (await operate('POST', 'transit/keys/own/rotate')),
  };
  return { control, token };
}
