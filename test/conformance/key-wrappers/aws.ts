import {
  CreateKeyCommand,
  DisableKeyCommand,
  EnableKeyCommand,
  KMSClient,
  RotateKeyOnDemandCommand,
} from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import type { KeyWrapperControl, KeyWrapperTarget } from '@sealring/conformance';
import { type Credentials, createUser, enforcePolicies } from '../../support/moto.ts';
import { freePort } from '../../support/redis.ts';

type ClientConfig = ConstructorParameters<typeof KMSClient>[0];

/** Wrappers of two KMS keys in one region, each with its own client; nothing answers at `closed`. */
export function awsTarget(
  name: string,
  [own, other]: readonly [string, string],
  { closed, ...config }: NonNullable<ClientConfig> & { readonly closed: string },
  control: KeyWrapperControl = {},
): KeyWrapperTarget {
  const start = (keyId: string, more: ClientConfig = {}) => {
    const region = keyId.split(':')[3];
    const client = new KMSClient({ maxAttempts: 1, ...(region !== undefined && { region }), ...config, ...more });
    const keyWrapper = awsKmsKeyWrapper({ keyId, client });
    return { keyWrapper, close: () => client.destroy() };
  };
  return {
    name,
    create: () => start(own),
    createOtherKey: () => start(other),
    createUnreachable: () => start(own, { endpoint: closed }),
    control,
    // KMS finds the version in the ciphertext, and names none.
    supports: { versions: false },
  };
}

/** LocalStack: it enforces key states, but no permissions. */
export async function localstackTarget(endpoint: string): Promise<KeyWrapperTarget> {
  const { own, other, control, closed, config } = await localstackKeys(endpoint);
  return awsTarget('AWS KMS, LocalStack', [own, other], { ...config, closed }, control);
}

/** Two KMS keys, operations on the first, and an address where nothing answers. */
export async function localstackKeys(endpoint: string) {
  const config = emulatorConfig(endpoint, { accessKeyId: 'test', secretAccessKey: 'test' });
  const operator = new KMSClient(config);
  const [own, other] = [await createKey(operator), await createKey(operator)];
  const control: KeyWrapperControl = {
    disable: async () => void (await operator.send(new DisableKeyCommand({ KeyId: own }))),
    enable: async () => void (await operator.send(new EnableKeyCommand({ KeyId: own }))),
    rotate: async () => void (await operator.send(new RotateKeyOnDemandCommand({ KeyId: own }))),
  };
  return { own, other, control, closed: await nobody(), config };
}

/** A separate moto server, which enforces policies from now on, but no key states. */
export async function motoTarget(endpoint: string): Promise<KeyWrapperTarget> {
  const member = await createUser(endpoint, 'member', ['kms:*']);
  const stranger = await createUser(endpoint, 'stranger', []);
  const operator = new KMSClient(emulatorConfig(endpoint, member));
  const [own, other] = [await createKey(operator), await createKey(operator)];
  operator.destroy();
  await enforcePolicies(endpoint);
  let caller = member;
  const control: KeyWrapperControl = {
    deny() {
      caller = stranger;
    },
    allow() {
      caller = member;
    },
  };
  const config = {
    ...emulatorConfig(endpoint, member),
    // The credentials have already expired, so the client requests new ones for every call.
    credentials: async () => ({ ...caller, expiration: new Date(0) }),
    closed: await nobody(),
  };
  return awsTarget('AWS KMS, moto', [own, other], config, control);
}

function emulatorConfig(endpoint: string, { accessKeyId, secretAccessKey }: Credentials) {
  return { endpoint, region: 'us-east-1', maxAttempts: 1, credentials: { accessKeyId, secretAccessKey } };
}

async function createKey(client: KMSClient): Promise<string> {
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  return KeyMetadata?.Arn ?? '';
}

async function nobody(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}
