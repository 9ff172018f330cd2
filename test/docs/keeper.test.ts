import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DockerfileParser, type Instruction, type JSONInstruction } from 'dockerfile-ast';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { emptyProject } from '../cli/proxy-process.ts';
import { freePort } from '../support/redis.ts';
import { type Ended, runProgram } from '../support/run-program.ts';
import { until } from '../support/until.ts';

/* The files that deploy `sealring keeper`: they have the shape that each platform accepts, and their commands work. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = join(root, 'docs/examples');
const read = (path: string): string => readFileSync(join(examples, path), 'utf8');
const jsonOf = (path: string): Readonly<Record<string, unknown>> => JSON.parse(read(path));
const yamlOf = (path: string): unknown => {
  const [document] = parseAllDocuments(read(path), { strict: true });
  expect(document?.errors).toEqual([]);
  return document?.toJS();
};
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value);

const SERVICE = yamlOf('cloud-run/keeper.yaml');
const JOB = yamlOf('cloud-run/keeper-job.yaml');
const DEPLOYMENT = yamlOf('kubernetes/keeper.yaml');
const CRON = yamlOf('kubernetes/keeper-cron.yaml');
const FUNCTION = jsonOf('lambda/function.json');
const SCHEDULE = jsonOf('lambda/schedule.json');
const CONTAINERS: readonly (readonly [file: string, container: unknown])[] = [
  ['kubernetes/keeper.yaml', at(DEPLOYMENT, 'spec', 'template', 'spec', 'containers', 0)],
  ['kubernetes/keeper-cron.yaml', at(CRON, 'spec', 'jobTemplate', 'spec', 'template', 'spec', 'containers', 0)],
  ['cloud-run/keeper.yaml', at(SERVICE, 'spec', 'template', 'spec', 'containers', 0)],
  ['cloud-run/keeper-job.yaml', at(JOB, 'spec', 'template', 'spec', 'template', 'spec', 'containers', 0)],
];

const dockerfile = DockerfileParser.parse(read('keeper/Dockerfile'));
const argumentsOf = (instruction: Instruction | undefined): readonly string[] =>
  (instruction?.getArguments() ?? []).map((argument) => argument.getValue());
/** The strings of an instruction in the exec form, which runs no shell. */
const execForm = (instruction: JSONInstruction | undefined): readonly string[] =>
  (instruction?.getJSONStrings() ?? []).map((argument) => argument.getJSONValue());
const instructions = (keyword: string): readonly Instruction[] =>
  dockerfile.getInstructions().filter((instruction) => instruction.getKeyword() === keyword);
const entrypoint = execForm(dockerfile.getENTRYPOINTs()[0]);
const command = execForm(dockerfile.getCMDs()[0]);

const project = emptyProject();
const environment = {
  SEALRING_RING_NAME: 'payments',
  SEALRING_RING_STORE: 'file',
  SEALRING_RING_FILE: join(project.cwd, 'payments.ring'),
  SEALRING_LOCAL_KEY_FILE: join(project.cwd, 'local.key'),
};
const inProject = (args: readonly string[]): Promise<Ended> =>
  runProgram(process.execPath, args, { cwd: project.cwd, env: { ...process.env, ...environment } });
beforeAll(async () => {
  writeFileSync(environment.SEALRING_LOCAL_KEY_FILE, randomBytes(32).toString('base64url'), { mode: 0o600 });
  cpSync(join(examples, 'lambda/keeper.mjs'), join(project.cwd, 'keeper.mjs'));
  const { code, output } = await inProject([entrypoint[1] ?? '', 'init']);
  if (code !== 0) throw new Error(output);
});
afterAll(() => project.remove());

describe('the Dockerfile of the keeper', () => {
  test('uses the slim image of Node.js 24 in every stage', () => {
    expect(dockerfile.getFROMs().map((from) => from.getImage())).toEqual(['node:24-slim', 'node:24-slim']);
  });

  test('runs no shell: every RUN, ENTRYPOINT and CMD has the exec form', () => {
    const runs = [...instructions('RUN'), ...instructions('ENTRYPOINT'), ...instructions('CMD')];
    expect(runs).toHaveLength(3);
    expect(runs.map((run) => execForm(run as JSONInstruction).length > 1)).toEqual([true, true, true]);
    expect(execForm(instructions('RUN')[0] as JSONInstruction).slice(0, 3)).toEqual(['npm', 'ci', '--omit=dev']);
  });

  test('switches to a non-root user, given by number, before the entry point', () => {
    const [user] = instructions('USER');
    expect(argumentsOf(user)).toEqual(['1000']);
    expect(user?.getRange().start.line).toBeLessThan(dockerfile.getENTRYPOINTs()[0]?.getRange().start.line ?? 0);
  });

  test('the container of the keeper is stopped by SIGTERM and leaves probes to the orchestrator', () => {
    expect(argumentsOf(instructions('STOPSIGNAL')[0])).toEqual(['SIGTERM']);
    expect(dockerfile.getHEALTHCHECKs()).toEqual([]);
  });

  test('copies only what the package file names, and exposes the port of the probes', () => {
    expect(instructions('COPY').map((copy) => copy.getArgumentsContent())).toEqual([
      'package.json package-lock.json ./',
      '/app ./',
    ]);
    expect(argumentsOf(instructions('EXPOSE')[0])).toEqual([command[command.indexOf('--health-port') + 1]]);
  });

  test('installs packages of this repository in their current versions', () => {
    for (const [name, range] of Object.entries(Object(jsonOf('keeper/package.json')['dependencies']))) {
      const { version } = JSON.parse(
        readFileSync(join(root, 'packages', name.replace('@sealring/', ''), 'package.json'), 'utf8'),
      );
      expect(range).toBe(`^${version}`);
    }
  });

  test('the command of the Dockerfile answers the probes, and ends on SIGTERM with exit code 0', async () => {
    const port = await freePort();
    expect(entrypoint[0]).toBe('node');
    const args = [...entrypoint.slice(1), ...command.map((one) => (one === '8081' ? String(port) : one))];
    const child = spawn(process.execPath, args, { cwd: project.cwd, env: { ...process.env, ...environment } });
    const ended = new Promise((resolve) => child.on('close', resolve));
    const isReady = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isReady, 20);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});

describe('the deployment files of the keeper', () => {
  test('the deployment files of the keeper conform to the vendors’ own types', async () => {
    mkdirSync(join(root, '.cache'), { recursive: true });
    const folder = mkdtempSync(join(root, '.cache', 'keeper-'));
    try {
      const program = `import type { CreateFunctionCommandInput } from '@aws-sdk/client-lambda';
import type { CreateScheduleCommandInput } from '@aws-sdk/client-scheduler';
import type { run_v1 } from '@googleapis/run';
export const lambda: Omit<CreateFunctionCommandInput, 'Code'> = ${JSON.stringify(FUNCTION)};
export const schedule: CreateScheduleCommandInput = ${JSON.stringify(SCHEDULE)};
export const service: run_v1.Schema$Service = ${JSON.stringify(SERVICE)};
export const job: run_v1.Schema$Job = ${JSON.stringify(JOB)};
`;
      writeFileSync(join(folder, 'keeper.ts'), program);
      const config = { extends: relative(folder, join(root, 'tsconfig.test.json')), include: ['*.ts'] };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      const tsc = join(root, 'node_modules/.bin/tsc');
      expect(await runProgram(tsc, ['-p', '.', '--pretty', 'false'], { cwd: folder })).toEqual({ code: 0, output: '' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test.each(CONTAINERS)('%s has arguments that the command accepts', async (file, container) => {
    const args = at(container, 'args') as readonly string[];
    expect(args.includes('--once')).toBe(file.includes('cron') || file.includes('job'));
    // It reads the configuration after the arguments.
    const ended = await inProject([...entrypoint.slice(1), ...args, '--config', 'missing.mjs']);
    expect(ended).toMatchObject({ code: 2, output: expect.stringContaining('"missing.mjs" does not exist') });
  });

  test.each(CONTAINERS.filter(([file]) => file.endsWith('keeper.yaml')))(
    '%s probes the port that its arguments set, and uses /livez for liveness',
    (_, container) => {
      const args = at(container, 'args') as readonly string[];
      expect(at(container, 'ports', 0, 'containerPort')).toBe(Number(args[args.indexOf('--health-port') + 1]));
      for (const probe of ['livenessProbe', 'startupProbe']) {
        expect(at(container, probe, 'httpGet', 'path') ?? '/livez').toBe('/livez');
      }
      expect(at(container, 'livenessProbe')).toBeDefined();
    },
  );

  test('the keeper has one instance on Cloud Run, with CPU between requests', () => {
    expect(at(SERVICE, 'spec', 'template', 'metadata', 'annotations')).toEqual({
      'autoscaling.knative.dev/minScale': '1',
      'autoscaling.knative.dev/maxScale': '1',
      'run.googleapis.com/cpu-throttling': 'false',
    });
  });

  test('the cron jobs run the keeper every hour, and Kubernetes runs only one job at a time', () => {
    expect(at(CRON, 'spec', 'schedule')).toMatch(/^\d+ \* \* \* \*$/);
    expect(at(CRON, 'spec', 'concurrencyPolicy')).toBe('Forbid');
    expect(SCHEDULE['ScheduleExpression']).toBe('rate(1 hour)');
  });

  test('the deployment files name variables that configure the command, and no secret', () => {
    const names = CONTAINERS.flatMap(([, container]) =>
      ((at(container, 'env') ?? []) as readonly { readonly name: string }[]).map(({ name }) => name),
    );
    const known = readFileSync(join(root, 'packages/cli/README.md'), 'utf8');
    const all = [...names, ...Object.keys(Object(at(FUNCTION, 'Environment', 'Variables')))];
    expect(all.filter((name) => !known.includes(`\`${name}\``))).toEqual([]);
    expect(all).toContain('SEALRING_GCP_KMS_KEY_ID');
  });
});

describe('the Lambda function of the keeper', () => {
  const invoke = `import { handler } from ${JSON.stringify(pathToFileURL(join(project.cwd, 'keeper.mjs')).href)}; await handler();`;
  const run = (): Promise<Ended> => inProject(['--input-type=module', '--eval', invoke]);

  test('the Lambda function names its handler, and the schedule names the function', () => {
    expect(FUNCTION['Handler']).toBe('keeper.handler');
    expect(at(SCHEDULE, 'Target', 'Arn')).toMatch(new RegExp(`:function:${String(FUNCTION['FunctionName'])}$`));
  });

  test('runs the keeper once, and fails if the keeper fails', async () => {
    expect(await run()).toMatchObject({ code: 0, output: expect.stringContaining('"event":"done","condition":"ok"') });
    rmSync(environment.SEALRING_RING_FILE);
    expect(await run()).toMatchObject({
      code: 1,
      output: expect.stringContaining('sealring keeper ended with exit code 1'),
    });
  });
});
