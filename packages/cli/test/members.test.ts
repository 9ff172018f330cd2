import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { join } from 'node:path';
import { createKmsCodec, fileRing, hashedKeyId, localKeyWrapper } from '@sealring/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
const servers: Server[] = [];
beforeEach(async () => {
  project = newProject();
  await runCli(['init', '--local'], { cwd: project.cwd });
});
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  project.remove();
});

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/health`;
}

const status = (...members: readonly string[]) =>
  runCli(['status', ...members.flatMap((member) => ['--member', member])], { cwd: project.cwd });

test('status --member shows the health of each server, and marks servers that do not report it', async () => {
  await using codec = await createKmsCodec({
    ringName: 'local',
    ring: fileRing(join(project.cwd, 'sealring.local.ring')),
    keyWrapper: localKeyWrapper({ masterKey: readFileSync(join(project.cwd, 'sealring.local.key'), 'utf8').trim() }),
  });
  const { sealingKey } = codec.health();
  const [well, ill, other, rude] = await Promise.all([
    serve((_, response) => response.end(JSON.stringify(codec.health()))),
    serve((_, response) => {
      const lastError = { source: 'kms', kind: '\u001b[31mdenied', at: new Date() };
      response.statusCode = 503;
      const problems = [{ kind: 'clock', detail: 'off \u001b[31mby far', remedy: 'mend it' }, { kind: 7 }, null];
      response.end(JSON.stringify({ ...codec.health(), status: 'failing', canSeal: false, lastError, problems }));
    }),
    serve((_, response) => response.end('hello')),
    serve((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()),
  ]);
  const { code, stdout } = await status(well, ill, other, rude, 'http://127.0.0.1:1/');
  expect(code).toBe(3);
  const lineOf = (member: string): string => stdout.split('\n').find((line) => line.startsWith(member)) ?? '';
  expect(lineOf(well)).toMatch(new RegExp(`ok +seals unseals +${hashedKeyId(sealingKey ?? '')} +\\d{4}-`));
  expect(lineOf(ill)).toMatch(/failing +- unseals .*kms \\u001b\[31mdenied/);
  expect(stdout).toContain(`problem at ${ill}: off \\u001b[31mby far\n  → mend it\n`);
  expect(stdout.match(/^problem/gm)).toHaveLength(1);
  expect(lineOf(other)).toContain('answered with status 200, but without codec.health()');
  expect(lineOf(rude)).toContain('not reachable');
  expect(lineOf('http://127.0.0.1:1/')).toContain('not reachable');
});

test('status --member stops reading an endless answer', async () => {
  const endless = await serve((_, response) => {
    const more = (): void => {
      while (response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  expect((await status(endless)).stdout).toMatch(/without codec\.health\(\)|not reachable/);
});

test.each(['ftp://a', 'a.example', ''])('--member %j is rejected with exit code 2', async (member) => {
  expect((await status(member)).code).toBe(2);
});

test.each([
  ['http://ada:hunter2@127.0.0.1/health', /user or a password/],
  ['ada:hunter2@127.0.0.1/health', /http:\/\/ or https:\/\//],
])('--member rejects the address %s, and does not repeat its password (F21)', async (address, message) => {
  const { code, stderr, stdout } = await status(address);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stdout + stderr).not.toContain('hunter2');
});

test.each([[[]], [['--watch', '1']]])('status --json %j escapes the invisible characters of a server', async (more) => {
  const evil = '\u009b2J\u202e\u007f';
  const address = await serve((_, response) => {
    const problems = [{ kind: evil, detail: evil, remedy: evil }];
    response.end(JSON.stringify({ status: 'ok', sealUntil: evil, problems }));
  });
  const { stdout } = await runCli(['status', '--json', ...more, '--member', address], {
    cwd: project.cwd,
    onStdout: (_, child) => void child.kill('SIGINT'),
  });
  expect(stdout).toContain(String.raw`\u009b2J\u202e\u007f`);
  expect(stdout).not.toMatch(/[\u007f-\u009f\u202e]/);
  const text = more.length === 0 ? stdout : stdout.split('\n')[0];
  expect(JSON.parse(text ?? '').members[0].health.sealUntil).toBe(evil);
});
