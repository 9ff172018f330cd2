import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './prepare.mjs';

/**
 * Which command runs a test file. Each line is the beginning of a path; the first list with a line for a file decides,
 * and any other file is quick: it needs neither a server nor minutes.
 */
const TIERS = {
  // Searches, packaging, infrastructure and other people's programs: `npm run test:all`.
  long: [
    'packages/conformance/test/cli.test.ts',
    'packages/conformance/test/codec.test.ts',
    'packages/conformance/test/exec.test.ts',
    'packages/conformance/test/key-wrapper.test.ts',
    'packages/conformance/test/modules.test.ts',
    'packages/conformance/test/ring-store.test.ts',
    'packages/conformance/test/single-use.test.ts',
    'packages/mcp/test/conformance.test.ts',
    'test/bench/',
    'test/canary/',
    'test/conformance/newcomer.test.ts',
    'test/conformance/python-codec.test.ts',
    'test/conformance/runners.test.ts',
    'test/docs/fences.test.ts',
    'test/docs/site.test.ts',
    'test/fuzz/',
    'test/migration/',
    'test/packaging/',
    'test/serverless/frozen.test.ts',
    'test/simulator/',
    'test/terraform/',
    'test/traces/',
  ],
  // Emulators, stores, doctor, and fleets of processes: `npm run test:services`.
  services: [
    'packages/aws-kms/test/localstack.test.ts',
    'packages/aws-kms/test/moto.test.ts',
    'packages/azure-blob/test/azurite.test.ts',
    'packages/azure-key-vault/test/fleet.test.ts',
    'packages/cli/test/documented-commands.test.ts',
    'packages/cli/test/environment.test.ts',
    'packages/cli/test/keeper.test.ts',
    'packages/cli/test/local.test.ts',
    'packages/cli/test/migration.test.ts',
    'packages/cli/test/mistakes.test.ts',
    'packages/cli/test/operating.test.ts',
    'packages/cli/test/settings.test.ts',
    'packages/cli/test/terminal.test.ts',
    'packages/core/test/stores/ring-stores.test.ts',
    'packages/dynamodb/test/moto.test.ts',
    'packages/gcs/test/fake-gcs.test.ts',
    'packages/kubernetes/test/ring.test.ts',
    'packages/postgres/test/postgres.test.ts',
    'packages/postgres/test/push.test.ts',
    'packages/postgres/test/single-use.test.ts',
    'packages/redis/test/push.test.ts',
    'packages/redis/test/redis.test.ts',
    'packages/s3/test/moto.test.ts',
    'packages/vault-transit/test/answers.test.ts',
    'packages/vault-transit/test/canary.test.ts',
    'packages/vault-transit/test/create-codec.test.ts',
    'packages/vault-transit/test/openbao.test.ts',
    'packages/vault-transit/test/policies.test.ts',
    'packages/vault-transit/test/spoiling-proxy.test.ts',
    'test/adapters/',
    'test/cli/',
    'test/conformance/',
    'test/docs/kubernetes.test.ts',
    'test/docs/main-job.test.ts',
    'test/docs/providers.test.ts',
    'test/fleet/',
    'test/observability/',
    'test/peers/',
    'test/python/',
    'test/serverless/',
    'test/single-use/',
    'test/stores/',
  ],
};

/**
 * The slowest files, slowest first: they start first, so that none of them runs alone at the end. Files that compute
 * and files that wait alternate.
 */
const SLOWEST = [
  'test/simulator/fault-classes.test.ts',
  'packages/conformance/test/key-wrapper.test.ts',
  'packages/conformance/test/codec.test.ts',
  'test/packaging/pages.test.ts',
  'packages/conformance/test/ring-store.test.ts',
  'test/simulator/simulator.test.ts',
  'test/terraform/aws-kms-on-moto.test.ts',
  'test/simulator/calls.test.ts',
  'test/serverless/frozen.test.ts',
  'test/traces/traces.test.ts',
  'test/stores/s3.test.ts',
  'test/stores/kubernetes.test.ts',
  'test/fleet/outages.test.ts',
  'test/simulator/adversary.test.ts',
  'test/python/fault-fleet.test.ts',
  'test/python/mixed-fleet.test.ts',
  'packages/conformance/test/cli.test.ts',
  'test/single-use/four-processes.test.ts',
  'test/migration/ephemeral.test.ts',
  'test/python/kit.test.ts',
  'test/conformance/codecs.test.ts',
  'test/stores/dynamodb.test.ts',
  'test/conformance/key-wrappers.test.ts',
  'test/fleet/promise-13-revoke.test.ts',
  'test/stores/in-process.test.ts',
  'test/conformance/newcomer.test.ts',
  'test/terraform/aws-kms.test.ts',
  'test/packaging/installed.test.ts',
  'test/docs/main-job.test.ts',
  'packages/conformance/test/exec.test.ts',
];

/** Every line of these lists. */
export const TIER_LINES = [...Object.values(TIERS).flat(), ...SLOWEST];

/** The place of a test file in the order of a run: the slowest files, then tier by tier. */
export function rankOf(file) {
  const place = SLOWEST.indexOf(file);
  if (place >= 0) return place;
  const tier = [...Object.keys(TIERS), 'quick'].indexOf(tierOf(file));
  return SLOWEST.length + tier;
}

/** `long`, `services` or `quick`, for a path from the root. */
export function tierOf(file) {
  const found = Object.entries(TIERS).find(([, lines]) => lines.some((line) => file.startsWith(line)));
  return found?.[0] ?? 'quick';
}

/** Every test file, as paths from the root. */
export function testFiles() {
  const packages = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'test'));
  return [...packages, 'test']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => file.replaceAll('\\', '/'));
}
