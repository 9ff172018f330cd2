import { randomBytes } from 'node:crypto';
import { type KeyWrapperTarget, runKeyWrapperConformance } from '@sealring/conformance';
import { localKeyWrapper } from '@sealring/core';
import { afterEach, expect, test } from 'vitest';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { expectNoFindings } from '../support/findings.ts';
import { startGcpKms } from '../support/gcp-kms/index.ts';
import { startLocalstack } from '../support/localstack.ts';
import { startMoto } from '../support/moto.ts';
import { startOpenBao } from '../support/openbao.ts';
import { startOrSkip } from '../support/servers.ts';
import { localstackTarget, motoTarget } from './key-wrappers/aws.ts';
import { AZURE_KEYS, azureTarget } from './key-wrappers/azure.ts';
import { gcpTarget, SDK_VERSIONS } from './key-wrappers/gcp.ts';
import { vaultTarget } from './key-wrappers/vault.ts';

/** One key wrapper, on an emulator of its service. */
interface Subject {
  readonly start: () => Promise<KeyWrapperTarget | undefined>;
  /** Requirements that it need not meet, or whose conditions its service cannot create. The test tries all others. */
  readonly notApplicable: readonly string[];
  /** Defects of the emulator, not of the key wrapper: the real service must meet these. */
  readonly emulatorFails?: readonly string[];
}

const cleanUp: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

/** Starts the emulator of a target; undefined if this machine lacks it, which under CI=true is a failure. */
async function serverOf<Server extends { readonly address: string }>(
  start: () => Promise<Server & { stop(): Promise<void> }>,
): Promise<Server | undefined> {
  let server: (Server & { stop(): Promise<void> }) | undefined;
  await startOrSkip(async () => {
    server = await start();
    return server;
  });
  const started = server;
  if (started !== undefined) cleanUp.push(() => started.stop());
  return started;
}

const BINDS_CONTEXT = ['WRAP-LENGTH-64', 'WRAP-LENGTH-32', 'WRAP-CONTEXT-DECLARED'];
const BINDS_NONE = ['WRAP-CONTEXT-BINDS', 'WRAP-CONTEXT-BOUNDARIES', 'WRAP-KEY-CONSTANT', 'WRAP-ARGUMENT-CONTEXT'];
const NO_SIGNATURES = ['WRAP-SIGN', 'WRAP-SIGN-BINDS', 'WRAP-VERIFY-LOCAL'];
const NO_DISABLE = ['WRAP-DISABLED', 'WRAP-ENABLED'];
const NO_DENY = ['WRAP-DENIED', 'WRAP-ALLOWED'];
const NO_VERSIONS = ['WRAP-ROTATED-NAMES', 'WRAP-VERSIONS-DECLARED', 'WRAP-VERSION-BINDS'];
const NO_ROTATE = ['WRAP-ROTATED-OPENS', 'WRAP-ROTATED-REFUSES', ...NO_VERSIONS];
const NO_GENERATE = ['WRAP-GENERATE'];
const NO_CLOSE = ['WRAP-CLOSE', 'WRAP-CLOSED', 'WRAP-CLOSE-ALONE'];

const azureSubject = (form: (typeof AZURE_KEYS)[number]): Subject => ({
  async start() {
    const vault = await FakeKeyVault.start();
    cleanUp.push(() => vault.stop());
    return azureTarget(form, vault);
  },
  notApplicable: [
    ...BINDS_NONE,
    ...NO_GENERATE,
    ...(form === 'A256KW' ? NO_SIGNATURES : []),
    ...(form === 'RSA-OAEP-256, one version' ? NO_ROTATE : []),
  ],
});

const gcpSubject = (version: (typeof SDK_VERSIONS)[number]): Subject => ({
  async start() {
    const server = await startGcpKms();
    cleanUp.push(() => server.stop());
    return gcpTarget(version, server);
  },
  notApplicable: [...BINDS_CONTEXT, ...NO_SIGNATURES, ...NO_GENERATE],
});

const SUBJECTS: Readonly<Record<string, Subject>> = {
  'core’s own': {
    async start() {
      const [a, b] = [randomBytes(32), randomBytes(32)];
      return {
        name: 'local',
        create: () => ({ keyWrapper: localKeyWrapper({ masterKey: a }) }),
        createOtherKey: () => ({ keyWrapper: localKeyWrapper({ masterKey: b }) }),
        supports: { remote: false },
      };
    },
    notApplicable: [
      ...BINDS_CONTEXT,
      ...NO_SIGNATURES,
      ...NO_DISABLE,
      ...NO_DENY,
      ...NO_ROTATE,
      ...NO_CLOSE,
      'WRAP-BEFORE-CALL',
      'WRAP-UNREACHABLE',
    ],
  },
  'AWS KMS on LocalStack': {
    async start() {
      const server = await serverOf(startLocalstack);
      return server && localstackTarget(server.address);
    },
    notApplicable: [...BINDS_CONTEXT, ...NO_SIGNATURES, ...NO_DENY, ...NO_VERSIONS],
    emulatorFails: ['WRAP-CONTEXT-BOUNDARIES'],
  },
  'AWS KMS on moto': {
    async start() {
      // A separate moto server, because the whole server enforces the policies.
      const server = await serverOf(startMoto);
      return server && motoTarget(server.address);
    },
    notApplicable: [...BINDS_CONTEXT, ...NO_SIGNATURES, ...NO_DISABLE, ...NO_ROTATE],
    // It answers AccessDeniedException for a ciphertext whose header names another key than the request.
    emulatorFails: [
      'WRAP-CONTEXT-BOUNDARIES',
      'WRAP-BIT-FLIP',
      'WRAP-TRUNCATION',
      'WRAP-EXTENSION',
      'WRAP-EMPTY',
      'WRAP-OTHER-KEY',
    ],
  },
  ...Object.fromEntries(SDK_VERSIONS.map((version) => [`Google Cloud KMS, SDK ${version}`, gcpSubject(version)])),
  ...Object.fromEntries(AZURE_KEYS.map((form) => [`Azure Key Vault, ${form}`, azureSubject(form)])),
  'Vault transit on OpenBao': {
    async start() {
      const server = await serverOf(async () => {
        const openbao = await startOpenBao();
        return { ...openbao, stop: () => openbao.close() };
      });
      return server && vaultTarget(server);
    },
    notApplicable: [...BINDS_CONTEXT, ...NO_SIGNATURES, ...NO_GENERATE],
  },
};

for (const [title, { start, notApplicable, emulatorFails = [] }] of Object.entries(SUBJECTS)) {
  test(`${title} passes the whole conformance kit`, async ({ skip }) => {
    const target = await start();
    if (target === undefined) return skip('its emulator cannot run here');
    const report = await runKeyWrapperConformance(target);
    const findings = expectNoFindings(report, emulatorFails);
    // Not every run gives every warning, but the test must notice an emulator that has improved.
    expect(findings.length > 0).toBe(emulatorFails.length > 0);
    const left = report.results.filter(({ status }) => status === 'not-applicable').map(({ id }) => id);
    expect(left.toSorted()).toEqual(notApplicable.toSorted());
  });
}
