import type { KeyWrapper } from '@sealring/core';
import { loadPackageOf } from '../settings/adapter-packages.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';

/** The methods of the SDK's client that are used. */
interface Client {
  send(command: object, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

/** The exports of `@aws-sdk/client-kms` that are used; every 3.x version has them. */
interface KmsSdk {
  readonly KMSClient: new (options: object) => Client;
  readonly DescribeKeyCommand: new (input: object) => object;
  readonly GetKeyRotationStatusCommand: new (input: object) => object;
}

const REGION = /^arn:aws[a-z-]*:kms:([a-z0-9-]+):/;

/**
 * Gets the state and the rotation status of the key from AWS, with the default credential chain. Servers do not need
 * these permissions and should not have them, so a denial is not an error.
 */
export async function checkAwsKey({ keyId }: KeyWrapper, signal: AbortSignal): Promise<readonly Finding[]> {
  const sdk = await loadPackageOf('@sealring/aws-kms', '@aws-sdk/client-kms');
  if (sdk === undefined) return [unchecked('state', 'kms:DescribeKey', '@aws-sdk/client-kms is not installed')];
  const { KMSClient, DescribeKeyCommand, GetKeyRotationStatusCommand } = sdk as unknown as KmsSdk;
  const region = REGION.exec(keyId)?.[1];
  const client = new KMSClient({ maxAttempts: 1, ...(region !== undefined && { region }) });
  const ask = async (command: object): Promise<unknown> => client.send(command, { abortSignal: signal });
  try {
    const findings = [await stateOf(keyId, () => ask(new DescribeKeyCommand({ KeyId: keyId })))];
    if (findings[0]?.severity === 'ok') {
      findings.push(await rotationOf(keyId, () => ask(new GetKeyRotationStatusCommand({ KeyId: keyId }))));
    }
    return findings;
  } finally {
    client.destroy();
  }
}

async function stateOf(keyId: string, ask: () => Promise<unknown>): Promise<Finding> {
  const answer = await answerOf(ask);
  if ('refusal' in answer) return unchecked('state', 'kms:DescribeKey', answer.refusal);
  const metadata = Reflect.get(Object(answer.value), 'KeyMetadata') as Readonly<Record<string, unknown>> | undefined;
  const state = String(metadata?.['KeyState']);
  const { KeyUsage: usage, KeySpec: spec, DeletionDate: deletion } = metadata ?? {};
  if (state === 'PendingDeletion') {
    const when = deletion instanceof Date ? ` and will be deleted on ${deletion.toISOString()}` : '';
    return error(
      'kms-pending-deletion',
      `aws-kms: the key is pending deletion${when} (key ${keyId})`,
      'Before that date, run aws kms cancel-key-deletion --key-id <id>, then aws kms enable-key --key-id <id>. After that date, nothing can unwrap the ring.',
    );
  }
  if (state === 'Disabled') {
    return error(
      'kms-disabled',
      `aws-kms: the key is disabled (key ${keyId})`,
      'Enable the key: aws kms enable-key --key-id <id>. Otherwise, servers stop sealing within minutes.',
    );
  }
  if (state !== 'Enabled') {
    return error(
      'kms-state',
      `aws-kms: the key is in state ${state} (key ${keyId})`,
      'Bring the key into the Enabled state.',
    );
  }
  if (isOther(usage, 'ENCRYPT_DECRYPT') || isOther(spec, 'SYMMETRIC_DEFAULT')) {
    return error(
      'kms-usage',
      `aws-kms: the key is not for symmetric encryption: KeySpec ${String(spec)}, KeyUsage ${String(usage)} (key ${keyId})`,
      'Use a key with KeySpec SYMMETRIC_DEFAULT and KeyUsage ENCRYPT_DECRYPT.',
    );
  }
  return ok('kms-state', `aws-kms: the key is enabled (key ${keyId})`);
}

/** Whether there is a value other than `wanted`. A missing value is accepted: the doctor also tries to use the key. */
function isOther(value: unknown, wanted: string): boolean {
  return typeof value === 'string' && value !== '' && value !== wanted;
}

async function rotationOf(keyId: string, ask: () => Promise<unknown>): Promise<Finding> {
  const answer = await answerOf(ask);
  if ('refusal' in answer) return unchecked('rotation', 'kms:GetKeyRotationStatus', answer.refusal);
  if (Reflect.get(Object(answer.value), 'KeyRotationEnabled') === true) {
    return ok('kms-rotation', `aws-kms: automatic rotation of the key is enabled (key ${keyId})`);
  }
  return warning(
    'kms-rotation',
    `aws-kms: automatic rotation of the key is disabled (key ${keyId})`,
    'Enable it: aws kms enable-key-rotation --key-id <id>. Old key material still unwraps.',
  );
}

async function answerOf(
  ask: () => Promise<unknown>,
): Promise<{ readonly value: unknown } | { readonly refusal: string }> {
  try {
    return { value: await ask() };
  } catch (thrown) {
    // Only the name is shown, because a message of the SDK can contain parts of the request.
    return { refusal: thrown instanceof Error ? thrown.name : typeof thrown };
  }
}

function unchecked(what: string, permission: string, why: string): Finding {
  return info(
    `kms-${what}`,
    `aws-kms: the ${what} of the key was not checked (${why})`,
    `Servers do not need ${permission}. To make this check, run the doctor with credentials that have this permission.`,
  );
}
