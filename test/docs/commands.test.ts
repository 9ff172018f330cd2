import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Commands that the tests execute: their place, their pattern, and the test that runs them. */
const EXECUTED: readonly (readonly [document: RegExp, command: RegExp, test: string])[] = [
  [
    /^(?:packages\/cli\/README|docs\/guides\/(?:operate|incidents|rotation-and-revocation|export-and-import))\.md$/,
    /^(?!npm install)/,
    'packages/cli/test/documented-commands.test.ts',
  ],
  [/^docs\/providers\//, /^npx sealring (?:doctor|init|status)$/, 'test/docs/providers.test.ts'],
  [/^docs\/guides\/five-minutes-aws\.md$/, /./, 'test/packaging/newcomer.test.ts'],
  [/^docs\/guides\/proxy\.md$/, /^npx sealring/, 'test/cli/proxy.test.ts'],
  [/^docs\/guides\/observe\.md$/, /^npx sealring dashboard/, 'packages/cli/test/dashboard.test.ts'],
  [/^docs\/examples\//, /^node docs\/examples\/\w+\/main\.ts$/, 'test/docs/examples.test.ts'],
  [/./, /^npm start\b/, 'test/docs/main-job.test.ts'],
  [/./, /^npm run simulate\b/, 'test/simulator/command-line.test.ts'],
  [/./, /^npm run site\b/, 'test/docs/site.test.ts'],
  [
    /^docs\/guides\/write-your-own-codec\.md$/,
    /^(?:npx sealring-conformance|node --test)/,
    'test/conformance/newcomer.test.ts',
  ],
  [
    /^docs\/guides\/write-your-own-(?:key-wrapper|ring-store)\.md$/,
    /^npx sealring-conformance .*(?:--language python|--exec)/,
    'test/python/kit-guides.test.ts',
  ],
  [
    /^docs\/guides\/write-your-own-(?:key-wrapper|ring-store)\.md$/,
    /^(?:npx sealring-conformance|node --test)/,
    'test/conformance/guides.test.ts',
  ],
  [/./, /^(?:npm init|npm install|npm run pack|mkdir)\b/, 'test/packaging/pages.test.ts'],
  [/^packages\/conformance\//, /^npx sealring-conformance/, 'packages/conformance/test/cli.test.ts'],
  [/^docs\/terraform\.md$/, /^aws (?:kms|s3api)|^terraform/, 'test/terraform/aws-kms.test.ts'],
];

/** Commands that no test executes, with the reason. */
const NOT_EXECUTED: readonly (readonly [command: RegExp, why: string])[] = [
  [/^npm (test|run test:all)\b/, 'it is what runs this'],
  [/^npm run (?:bench|zoo|fuzz|mutants|canary)\b/, 'takes minutes; its parts have their own tests'],
  [/^pip install\b/, 'test/python installs the wheel from its file'],
  [/^(?:gcloud|az)\b/, 'the command line of the cloud, which cannot be installed here, against the cloud itself'],
  [/^(?:bao)\b/, 'the same calls are made over HTTP by test/support/openbao.ts and its users'],
  [/^(?:export (?:RING_BUCKET=|KEY_ARN=\$\(aws\b)|aws\b)/, 'the same calls are made with the SDK against an emulator'],
  [
    /^(?:docker build|zip|npm ci)\b/,
    'needs a published package; test/docs/keeper.test.ts runs the command of the image and the function',
  ],
  [/^aws ecs\b/, 'ECS itself; test/docs/ecs.test.ts checks the files by the types of the AWS SDK'],
  [/^terraform output\b/, 'needs an account; test/terraform/aws-kms-on-moto.test.ts reads the same outputs'],
  [/^kubectl\b/, 'test/docs/kubernetes.test.ts sends the same manifests to kube-apiserver, and runs the same programs'],
  [/^SEALRING_LIVE_/, 'needs an account of yours; without one these tests say that they are skipped'],
];

interface Command {
  readonly document: string;
  readonly line: string;
}

const documents = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md'], {
  cwd: root,
  exclude: ['**/node_modules/**'],
});

const commands: readonly Command[] = documents.flatMap((document) =>
  [...textOf(document).matchAll(/^```(?:sh|bash|shell|console)\b[^\n]*\n(.*?)^```$/gms)].flatMap(({ 1: script = '' }) =>
    script
      .replaceAll(/\\\n\s*/g, '')
      .split('\n')
      .map((line) => ({ document, line: line.replace(/\s+#\s.*$/, '').trim() }))
      .filter(({ line }) => line !== '' && !line.startsWith('#')),
  ),
);

const runBy = ({ document, line }: Command): string | undefined =>
  EXECUTED.find(([where, what]) => where.test(document) && what.test(line))?.[2];

describe('the commands in the documentation', () => {
  test('the documentation has commands', () => {
    expect(commands.length).toBeGreaterThan(80);
  });

  test('are all run by a test or listed with a reason', () => {
    const forgotten = commands.filter(
      (command) => runBy(command) === undefined && !NOT_EXECUTED.some(([what]) => what.test(command.line)),
    );
    expect(forgotten).toEqual([]);
  });

  test('are listed with tests that exist', () => {
    const tests = new Set(commands.flatMap((command) => runBy(command) ?? []));
    expect([...tests].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('every rule for commands that are not executed matches a command', () => {
    const idle = NOT_EXECUTED.filter(([what]) => !commands.some(({ line }) => what.test(line))).map(
      ([what]) => what.source,
    );
    expect(idle).toEqual([]);
  });
});
