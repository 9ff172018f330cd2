import type { KeyWrapper } from '@sealring/core';
import { loadPackageOf } from '../settings/adapter-packages.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';

/** The part of the SDK's client that is used. */
interface Client {
  send(command: object, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

/** The part of `@aws-sdk/client-kms` that is used; every 3.x version has it. */
interface KmsSdk {
  readonly KMSClient: new (options: object) => Client;
  readonly DescribeKeyCommand: new (input: object) => object;
  readonly GetKeyRotationStatusCommand: new (input: object) => object;
}

const REGION = /^arn:aws[a-z-]*:kms:([a-z0-9-]+):/;

/**
 * What AWS says of the key's state and rotation. It takes rights that servers do not need and should not have, so that a
 * refusal is no finding; asked with the default chain of credentials.
 */
export async function checkAwsKey({ keyId }: KeyWrapper, signal: AbortSignal): Promise<readonly Finding[]> {
  const sdk = await loadPackageOf('@sealring/aws-kms', '@aws-sdk/client-kms');
  if (sdk === undefined) return [unseen('state', 'DescribeKey', '@aws-sdk/client-kms cannot be found')];
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
  if ('refusal' in answer) return unseen('state', 'kms:DescribeKey', answer.refusal);
  const metadata = Reflect.get(Object(answer.value), 'KeyMetadata') as Readonly<Record<string, unknown>> | undefined;
  const state = String(metadata?.['KeyState']);
  const { KeyUsage: usage, KeySpec: spec, DeletionDate: deletion } = metadata ?? {};
  if (state === 'PendingDeletion') {
    const when = deletion instanceof Date ? `, and will be deleted on ${deletion.toISOString()}` : '';
    return error(
      'kms-pending-deletion',
      `aws-kms: the key is pending deletion${when} (key ${keyId})`,
      'aws kms cancel-key-deletion --key-id <id>, then aws kms enable-key --key-id <id>, before that date: afterwards nobody can open the ring.',
    );
  }
  if (state === 'Disabled') {
    return error(
      'kms-disabled',
      `aws-kms: the key is disabled (key ${keyId})`,
      'Enable the key: aws kms enable-key --key-id <id>. Servers stop sealing within minutes.',
    );
  }
  if (state !== 'Enabled') {
    return error(
      'kms-state',
      `aws-kms: the key is in state ${state} (key ${keyId})`,
      'Bring the key to state Enabled.',
    );
  }
  if (isOther(usage, 'ENCRYPT_DECRYPT') || isOther(spec, 'SYMMETRIC_DEFAULT')) {
    return error(
      'kms-usage',
      `aws-kms: the key is no symmetric encryption key (${String(spec)}, ${String(usage)})`,
      'Take a key of KeySpec SYMMETRIC_DEFAULT and KeyUsage ENCRYPT_DECRYPT.',
    );
  }
  return ok('kms-state', `aws-kms: the key is enabled (key ${keyId})`);
}

/** What is not told is not held against the key: its use is tried anyway. */
function isOther(value: unknown, wanted: string): boolean {
  return typeof value === 'string' && value !== '' && value !== wanted;
}

async function rotationOf(keyId: string, ask: () => Promise<unknown>): Promise<Finding> {
  const answer = await answerOf(ask);
  if ('refusal' in answer) return unseen('rotation', 'kms:GetKeyRotationStatus', answer.refusal);
  if (Reflect.get(Object(answer.value), 'KeyRotationEnabled') === true) {
    return ok('kms-rotation', `aws-kms: KMS rotates the key by itself (key ${keyId})`);
  }
  return warning(
    'kms-rotation',
    `aws-kms: KMS does not rotate the key by itself (key ${keyId})`,
    'aws kms enable-key-rotation --key-id <id>: old versions go on unwrapping, nothing else changes.',
  );
}

async function answerOf(
  ask: () => Promise<unknown>,
): Promise<{ readonly value: unknown } | { readonly refusal: string }> {
  try {
    return { value: await ask() };
  } catch (thrown) {
    // The name only: a text of the SDK may hold what the request held.
    return { refusal: thrown instanceof Error ? thrown.name : typeof thrown };
  }
}

function unseen(what: string, right: string, why: string): Finding {
  return info(
    `kms-${what}`,
    `aws-kms: the key's ${what} could not be seen (${why})`,
    `Servers do not need ${right}; run the doctor as somebody who has it to see more.`,
  );
}
