import { KeyManagementServiceClient } from '@google-cloud/kms';
import type { KeyWrapperControl, KeyWrapperTarget } from '@sealring/conformance';
import { type GcpKmsClient, gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { KeyManagementServiceClient as KeyManagementServiceClient5 } from 'google-cloud-kms-5';
import { clientOptions, type RunningGcpKms } from '../../support/gcp-kms/index.ts';
import { freePort } from '../../support/redis.ts';

/** The two supported major versions of the vendor's client. */
export const SDK_VERSIONS = ['6.3', '5.7'] as const;

type Client = GcpKmsClient & { close(): Promise<void> };
type Options5 = ConstructorParameters<typeof KeyManagementServiceClient5>[0];

function sdkClient(version: (typeof SDK_VERSIONS)[number], port: number): Client {
  const options = clientOptions({ host: '127.0.0.1', port });
  if (version === '6.3') return new KeyManagementServiceClient(options);
  // Each major version has its own copy of these types.
  return new KeyManagementServiceClient5(options as unknown as Options5);
}

/** Wrappers of two keys, each with its own client. */
export function gcpTargetOf(
  name: string,
  [own, other]: readonly [string, string],
  clientOf: () => Client,
  unreachableClientOf: () => Client,
): KeyWrapperTarget {
  const start = (keyId: string, client: Client) => ({
    keyWrapper: gcpKmsKeyWrapper({ keyId, client }),
    close: () => client.close(),
  });
  return {
    name,
    create: () => start(own, clientOf()),
    createOtherKey: () => start(other, clientOf()),
    createUnreachable: () => start(own, unreachableClientOf()),
  };
}

/** The fake Cloud KMS, through one version of the vendor's client. */
export async function gcpTarget(
  version: (typeof SDK_VERSIONS)[number],
  { kms, port }: RunningGcpKms,
): Promise<KeyWrapperTarget> {
  const { own, other, control } = gcpKeys(kms);
  const closed = await freePort();
  const target = gcpTargetOf(
    `Google Cloud KMS, @google-cloud/kms ${version}`,
    [own, other],
    () => sdkClient(version, port),
    () => sdkClient(version, closed),
  );
  return { ...target, control };
}

/** Two KMS keys, and operations on the first. */
export function gcpKeys(kms: RunningGcpKms['kms']) {
  const [own, other] = [kms.createKey('own'), kms.createKey('other')];
  const control: KeyWrapperControl = {
    disable: () => kms.disable(own),
    enable: () => kms.enable(own),
    deny: () => kms.deny(),
    allow: () => kms.heal(),
    rotate: () => void kms.rotate(own),
  };
  return { own, other, control };
}
