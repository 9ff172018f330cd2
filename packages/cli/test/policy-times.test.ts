import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { expect, test } from 'vitest';
import { completePolicy, POLICY_DEFAULTS } from '../src/policy-times.ts';

test('the defaults are those that core documents', () => {
  const core = dirname(fileURLToPath(import.meta.resolve('@sealring/core')));
  const documented = readFileSync(join(core, 'ring/policy.d.ts'), 'utf8');
  for (const [name, value] of Object.entries(POLICY_DEFAULTS)) {
    const comment = new RegExp(`/\\*\\*((?:(?!\\*/).)*)\\*/\\s*readonly ${name}:`, 's').exec(documented)?.[1] ?? '';
    const text = comment.replaceAll(/\s*\n\s*\*\s*/g, ' ').replaceAll(/(\d) (\d)/g, '$1$2');
    expect(`${name} ${text}`).toContain(`Default ${value}`);
  }
});

test('propagation is what core gives a new key', async () => {
  const policy = { sealOutageSeconds: 3_000, clockSkewSeconds: 60 };
  const keyWrapper = localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') });
  await using codec = await createKmsCodec({ keyWrapper, ring: memoryRing(), policy });
  await codec.rotate();
  const made = codec.health().keys.find(({ state }) => state === 'propagating');
  const seconds = Math.floor(((made?.activates.getTime() ?? 0) - (made?.created.getTime() ?? 0)) / 1_000);
  expect(seconds - completePolicy(policy).propagationSeconds).toBeLessThanOrEqual(1);
  expect(seconds).toBeGreaterThanOrEqual(completePolicy(policy).propagationSeconds);
});
