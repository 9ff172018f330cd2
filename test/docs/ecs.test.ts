import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';

/* The guide docs/guides/ecs.md: its files have the shape that ECS accepts, and match each other. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const task = JSON.parse(read('docs/examples/ecs/task-definition.json'));
const service = JSON.parse(read('docs/examples/ecs/service.json'));
const [container] = task.containerDefinitions;
/** Seconds that a start may take by default. */
const START_SECONDS = 120;

test('the task definition and the service conform to the AWS SDK’s own types', async () => {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache', 'ecs-'));
  try {
    const program = `import type { CreateServiceCommandInput, RegisterTaskDefinitionCommandInput } from '@aws-sdk/client-ecs';
export const task: RegisterTaskDefinitionCommandInput = ${JSON.stringify(task)};
export const service: CreateServiceCommandInput = ${JSON.stringify(service)};
`;
    writeFileSync(join(folder, 'ecs.ts'), program);
    const config = { extends: relative(folder, join(root, 'tsconfig.test.json')), include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(root, 'node_modules/.bin/tsc');
    expect(await runProgram(tsc, ['-p', '.', '--pretty', 'false'], { cwd: folder })).toEqual({ code: 0, output: '' });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe('the service', () => {
  test('the service names the task definition, its container and a port of the container', () => {
    const [target] = service.loadBalancers;
    expect(service.taskDefinition).toBe(task.family);
    expect(target.containerName).toBe(container.name);
    const ports: readonly { readonly containerPort: number }[] = container.portMappings;
    expect(ports.map(({ containerPort }) => containerPort)).toContain(target.containerPort);
  });

  test('replaces no task that is still starting', () => {
    expect(container.healthCheck.startPeriod).toBeGreaterThan(START_SECONDS);
    expect(service.healthCheckGracePeriodSeconds).toBeGreaterThan(START_SECONDS);
  });

  test('checks only whether the process answers', () => {
    expect(JSON.stringify(container.healthCheck.command)).toContain('/livez');
    expect(JSON.stringify([task, service])).not.toContain('/readyz');
  });
});

test('the health check passes on a server that answers, and fails on one that does not', async () => {
  const [, program, ...args] = container.healthCheck.command;
  expect(program).toBe('node');
  const check = (code: string): Promise<Ended> =>
    runProgram(process.execPath, ['-e', code.replace('127.0.0.1:8081', address)]);
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => response.writeHead(request.url === '/livez' ? 200 : 404).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${Object(server.address()).port}`;
  expect(await check(args[1])).toMatchObject({ code: 0 });
  expect(await check(args[1].replace('/livez', '/other'))).toMatchObject({ code: 1 });
  await new Promise((resolve) => server.close(resolve));
  expect(await check(args[1])).toMatchObject({ code: 1 });
});

test('the environment has every variable that the command reads for KMS and S3, and no secret', () => {
  const names: readonly string[] = container.environment.map(({ name }: { readonly name: string }) => name);
  const outputs =
    /locals \{\n {2}environment = merge\(([^]*?)\n {2}\)/.exec(read('terraform/aws-kms/outputs.tf'))?.[1] ?? '';
  const printed = [...outputs.matchAll(/\b(SEALRING_\w+)\b/g)].map(({ 1: name = '' }) => name);
  expect(printed).toContain('SEALRING_S3_KEY');
  const forS3 = printed.filter((name) => !name.includes('DYNAMODB'));
  expect(names.filter((name) => name.startsWith('SEALRING_')).toSorted()).toEqual(forS3.toSorted());
});
