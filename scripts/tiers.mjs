/**
 * Which command runs a test file. Each line is the beginning of a path; the first list with a line for a file decides,
 * and what no line names is quick: it needs neither a server nor minutes.
 */
const TIERS = {
  // Searches, packaging, infrastructure and other people's programs: `npm run test:all`.
  long: [
    'packages/conformance/test/cli.test.ts',
    'packages/conformance/test/codec.test.ts',
    'packages/conformance/test/exec.test.ts',
    'packages/conformance/test/ring-store.test.ts',
    'packages/mcp/test/conformance.test.ts',
    'test/bench/',
    'test/canary/',
    'test/conformance/newcomer.test.ts',
    'test/conformance/python-codec.test.ts',
    'test/conformance/runners.test.ts',
    'test/fuzz/',
    'test/migration/',
    'test/packaging/',
    'test/serverless/frozen.test.ts',
    'test/simulator/',
    'test/terraform/',
  ],
  // Emulators, stores, doctor, and fleets of processes: `npm run test:services`.
  services: [
    'packages/aws-kms/test/localstack.test.ts',
    'packages/aws-kms/test/moto.test.ts',
    'packages/azure-blob/test/azurite.test.ts',
    'packages/cli/test/documented-commands.test.ts',
    'packages/cli/test/local.test.ts',
    'packages/core/test/ring-stores.test.ts',
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

export const TIER_LINES = Object.values(TIERS).flat();

/** `long`, `services` or `quick`, for a path from the root. */
export function tierOf(file) {
  const found = Object.entries(TIERS).find(([, lines]) => lines.some((line) => file.startsWith(line)));
  return found?.[0] ?? 'quick';
}
