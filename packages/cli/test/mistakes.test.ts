import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';
import { configOf, MISTAKES, type Mistake } from './mistakes.ts';

const PAGE = join(import.meta.dirname, '../../../docs/mistakes.md');
const SECRET = 'hunter2';

const HEAD = `# Mistakes and their messages

This page lists the messages that the command \`sealring\` prints for mistakes on its command line, in its environment
and in its configuration file. The exit code is 2 for all of them.
Most messages about options come from \`@sealring/core\` and the adapters, so servers get the same text from \`createKmsCodec\`. No
message contains a secret.

\`packages/cli/test/mistakes.test.ts\` makes each mistake and compares the message with this page. To update the page, run \`npx vitest run --project cli mistakes -u\`, and review the
differences.
`;

const rows = new Map<string, string>();

/** Makes a mistake. @returns the message. */
async function make(mistake: Mistake): Promise<string> {
  const { args = ['status'], env, input = '' } = mistake;
  const project = newProject();
  try {
    writeFileSync(join(project.cwd, 'short.key'), 'short');
    if (env === undefined) writeFileSync(join(project.cwd, 'sealring.config.mjs'), configOf(mistake));
    const all = env === undefined || Object.keys(env).length === 0 ? env : { SEALRING_RING_NAME: 'payments', ...env };
    const { code, stdout, stderr } = await runCli(args, {
      cwd: project.cwd,
      env: { AWS_REGION: 'eu-west-1', ...all },
      input,
    });
    expect({ code, stdout: args.includes('--json') ? '' : stdout }, stderr).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^error: [^\n]*\n$/);
    expect(stderr).not.toContain(SECRET);
    return stderr
      .replace(/^error: /, '')
      .trimEnd()
      .replaceAll(project.cwd, '.');
  } finally {
    project.remove();
  }
}

/** The page's text for a mistake. */
function shown({ shown: text, args, env, options }: Mistake): string {
  if (text !== undefined) return text;
  if (options !== undefined) return fenced(options);
  if (env === undefined) return fenced(['sealring', ...(args ?? [])].join(' '));
  return Object.entries(env)
    .map(([name, value]) => fenced(`${name}=${value}`))
    .join(' ');
}

function fenced(text: string): string {
  const fence = text.includes('`') ? '``' : '`';
  return `${fence}${text.replaceAll('|', '\\|')}${fence}`;
}

const all = Object.values(MISTAKES).flat();

describe('mistakes', () => {
  test.each(all.map((mistake) => [shown(mistake), mistake] as const))(
    '%s is rejected with one line and exit code 2',
    async (text, mistake) => {
      const message = await make(mistake);
      expect(message.length).toBeGreaterThan(10);
      rows.set(text, fenced(message));
    },
  );

  test('at least 60 different mistakes are listed', () => {
    expect(new Set(all.map(shown)).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(60);
  });

  test('the page lists every mistake, with its message', async ({ skip }) => {
    skip(rows.size < all.length, 'only some of the mistakes were made');
    const sections = Object.entries(MISTAKES).map(([title, mistakes]) => {
      const lines = mistakes.map((mistake) => `| ${shown(mistake)} | ${rows.get(shown(mistake))} |`);
      return [`## ${title}`, '', '| mistake | message |', '|---|---|', ...lines, ''].join('\n');
    });
    await expect([HEAD, ...sections].join('\n')).toMatchFileSnapshot(PAGE);
  });
});
