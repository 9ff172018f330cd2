import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FleetSettings, RefundServer } from './fleet.ts';
import { environmentFor } from './kms.ts';
import type { KmsSettings } from './messages.ts';
import { type Choice, help, readOptions, UsageError } from './options.ts';
import { tellStory } from './story.ts';
import { Timeline } from './timeline.ts';

/** Where the wrapping key comes from; a local one is made for this run and sent to the servers only. */
function settingsFor(choice: Choice, folder: string): FleetSettings {
  const environment = choice.kms === 'aws' ? environmentFor(choice.endpoint) : process.env;
  return { ringPath: join(folder, 'ring.json'), ringName: choice.ringName, kms: kmsOf(choice), environment };
}

function kmsOf(choice: Choice): KmsSettings {
  switch (choice.kms) {
    case 'local':
      return { kind: 'local', masterKey: randomBytes(32).toString('base64url') };
    case 'aws':
      return { kind: 'aws', keyId: choice.keyId };
    case 'gcp':
      return { kind: 'gcp', keyId: choice.keyId, endpoint: choice.endpoint };
    case 'azure':
      return { kind: 'azure', keyId: choice.keyId, signKeyId: choice.signKeyId };
    case 'vault':
      return { kind: 'vault', keyId: choice.keyId, address: choice.endpoint };
  }
}

const SERVICES = { aws: 'AWS', gcp: 'Google Cloud', azure: 'Azure Key Vault', vault: 'Vault transit' } as const;

function titleOf(choice: Choice): string {
  if (choice.kms === 'local') return 'KMS: local key wrapper · ring: a file';
  const at = 'endpoint' in choice && choice.endpoint !== undefined ? ` at ${choice.endpoint}` : '';
  return `KMS: ${SERVICES[choice.kms]} ${choice.keyId}${at} · ring: a file`;
}

/** A signal, or a closed output, ends the run in order: it stops the servers and removes the files. */
function interrupted(): Promise<never> {
  return new Promise((_, reject) => {
    process.stdout.on('error', reject);
    // Further signals change nothing: the end that the first signal requested takes two seconds at most.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`stopped by ${signal}`)));
    }
  });
}

async function run(choice: Choice): Promise<number> {
  const timeline = new Timeline();
  const started: RefundServer[] = [];
  const stopped = interrupted();
  const folder = await mkdtemp(join(tmpdir(), 'sealring-'));
  try {
    timeline.note(titleOf(choice));
    await Promise.race([tellStory(timeline, settingsFor(choice, folder), started), stopped]);
    return 0;
  } catch (error) {
    timeline.failed(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

try {
  const choice = readOptions(process.argv.slice(2));
  if (choice === 'help') process.stdout.write(`${help}\n`);
  // A story that was stopped half-way may still wait for something.
  else process.exit(await run(choice));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${help}\n`);
  process.exitCode = 1;
}
