import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { type Credentials, createUser } from '../support/moto.ts';
import { allowed, type Policy } from './policy-laws.ts';
import type { Workspace } from './terraform.ts';

const ROLES = ['member', 'reader', 'rotator', 'break_glass'] as const;
export type Role = (typeof ROLES)[number];

/** The outputs of the examples. */
export interface Outputs {
  readonly codec_options: { readonly keyId: string; readonly multiRegion: boolean; readonly ringName: string };
  readonly ring_options: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly environment_file: string;
  readonly policies: Readonly<Record<Role, string>>;
}

/** Clients with one identity. */
export interface Clients {
  readonly kms: KMSClient;
  readonly s3: S3Client;
  readonly dynamodb: DynamoDBClient;
  destroy(): void;
}

/** Points an example at the emulator: Terraform merges such a file into the one that it overrides. */
export function overrideProvider(workspace: Workspace, example: string, moto: string): void {
  const endpoints = ['dynamodb', 'events', 'iam', 'kms', 's3', 'sns', 'sts'].map(
    (service) => `    ${service} = "${moto}"`,
  );
  const lines = [
    'provider "aws" {',
    '  access_key                  = "test"',
    '  secret_key                  = "test"',
    '  max_retries                 = 5',
    '  s3_use_path_style           = true',
    '  skip_credentials_validation = true',
    '  skip_metadata_api_check     = true',
    '  skip_region_validation      = true',
    '  skip_requesting_account_id  = true',
    '  endpoints {',
    ...endpoints,
    '  }',
    '}',
  ];
  writeFileSync(join(workspace.pathOf(example), 'emulator_override.tf'), `${lines.join('\n')}\n`);
}

export async function outputsOf(workspace: Workspace, example: string): Promise<Outputs> {
  const printed = JSON.parse(await workspace.succeed(example, 'output', '-json')) as Record<string, { value: unknown }>;
  return Object.fromEntries(Object.entries(printed).map(([name, { value }]) => [name, value])) as unknown as Outputs;
}

/** Clients of `us-east-1`, the only region in which moto checks nothing. */
export function clientsFor(moto: string, { accessKeyId, secretAccessKey }: Credentials): Clients {
  const options = {
    endpoint: moto,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  };
  const clients = {
    kms: new KMSClient(options),
    s3: new S3Client({ ...options, forcePathStyle: true }),
    dynamodb: new DynamoDBClient(options),
  };
  return {
    ...clients,
    destroy() {
      for (const client of Object.values(clients)) client.destroy();
    },
  };
}

/**
 * Clients of a user for each role, with the actions that the role's policy allows. moto supports only the resource `*`,
 * and no conditions; a Deny is left out.
 */
export async function clientsByRole(
  moto: string,
  outputs: Outputs,
): Promise<Record<Role, Clients & { readonly credentials: Credentials }>> {
  const clients: [Role, Clients & { readonly credentials: Credentials }][] = [];
  for (const role of ROLES) {
    const actions = allowed(JSON.parse(outputs.policies[role]) as Policy);
    const credentials = await createUser(moto, `${outputs.codec_options.ringName}-${role}`, actions);
    clients.push([role, { ...clientsFor(moto, credentials), credentials }]);
  }
  return Object.fromEntries(clients) as Record<Role, Clients & { readonly credentials: Credentials }>;
}

/** Ends the effect of `enforcePolicies`. */
export async function liftPolicies(moto: string): Promise<void> {
  const response = await fetch(`${moto}/moto-api/reset-auth`, { method: 'POST', body: '1000000' });
  if (!response.ok) throw new Error(`moto: reset-auth returned ${response.status}`);
}
