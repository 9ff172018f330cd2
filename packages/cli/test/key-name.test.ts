import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKmsCodec, fileRing, hashedKeyId, type KmsCodec, localKeyWrapper } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
let codec: KmsCodec;
beforeEach(async () => {
  project = newProject();
  await run(['init', '--local']);
  codec = await createKmsCodec({
    ringName: 'local',
    ring: fileRing(join(project.cwd, 'sealring.local.ring')),
    keyWrapper: localKeyWrapper({ masterKey: readFileSync(join(project.cwd, 'sealring.local.key'), 'utf8').trim() }),
  });
});
afterEach(async () => {
  await codec.close();
  project.remove();
});

const run = (args: readonly string[], input = '') => runCli(args, { cwd: project.cwd, input });

interface Key {
  readonly name: string;
  readonly id: string;
  readonly fingerprint: number;
  readonly state: string;
}

async function keys(): Promise<readonly Key[]> {
  return JSON.parse((await run(['status', '--json'])).stdout).keys;
}

describe('the name of a key', () => {
  test('the name of a key is the same in an event, in status, and in inspect', async () => {
    const events: string[] = [];
    const listen = (data: unknown): void => void events.push(String(Object(data).keyId));
    subscribe('sealring:rotation', listen);
    try {
      await codec.rotate();
    } finally {
      unsubscribe('sealring:rotation', listen);
    }
    const text = (await run(['status'])).stdout;
    expect(events).toHaveLength(1);
    expect(text).toMatch(new RegExp(`^${events[0]} +propagating`, 'm'));
    expect(text).not.toContain(codec.health().sealingKey);
    const token = codec.seal(Buffer.from('x'));
    const { stdout } = await run(['inspect'], token);
    expect(stdout).toContain(`key:    ${hashedKeyId(codec.health().sealingKey ?? '')}\n`);
  });

  test.each(['name', 'id', 'fingerprint'] as const)('revoke accepts the %s of a key', async (what) => {
    const [key] = await keys();
    const { code, stdout } = await run(['revoke', '--yes', '--no-wait', '--json', '--', String(key?.[what])]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).revoked).toEqual([key?.name]);
    expect((await keys()).find(({ id }) => id === key?.id)?.state).toBe('revoked');
  });

  test('the output of revoke and rotate names the revoked and the published key', async () => {
    const [key] = await keys();
    const { stdout } = await run(['revoke', '--all', '--yes', '--no-wait']);
    const next = (await keys()).find(({ state }) => state === 'active');
    expect(stdout.split('\n')[0]).toBe(`revoked 1 key: ${key?.name}; published key ${next?.name}, which seals now`);
    const rotated = await run(['rotate']);
    expect(rotated.stdout.split('\n')[0]).toMatch(/^published key \S{12}, which seals from \d{4}-\d\d-\d\dT[\d:]{8}Z$/);
  });
});
