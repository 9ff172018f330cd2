import { isDeepStrictEqual } from 'node:util';
import { type Command, InvalidArgumentError } from 'commander';
import { EXIT_CODE } from '../exit-code.ts';
import { type CheckResult, Probe } from '../probe/probe.ts';
import { ProbedServer, type Target } from '../probe/server.ts';
import { wrapped } from '../terminal/page.ts';
import { type Paint, paintFor } from '../terminal/paint.ts';
import { withProgress } from '../terminal/progress.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { numberIn } from './numbers.ts';
import { printJson } from './options.ts';

const EXAMPLE = `
Calls a tool, prompt or resource that asks for input (protocol revision
2026-07-28), agrees to every question, and sends the state back: as it was,
changed, with other arguments, as another user, and after its lifetime. It makes
about two dozen calls that take effect: probe a test server, or a call without
effects. Access tokens are read from SEALRING_PROBE_TOKEN and, for another user,
SEALRING_PROBE_OTHER_TOKEN.

Exit codes: 0 no hole found; 1 a hole, a server that cannot be probed or, with
--strict, a check that was not made; 2 wrong command line.

Example, with a lifetime of two seconds on the test server:
  $ npx sealring probe http://127.0.0.1:3000/mcp --tool refund \\
      --arguments '{"order":"A1"}' --lifetime 2
`;

interface ProbeOptions {
  readonly tool?: string;
  readonly prompt?: string;
  readonly resource?: string;
  readonly arguments?: Record<string, unknown>;
  readonly otherArguments?: Record<string, unknown>;
  readonly otherResource?: string;
  readonly answers?: Record<string, unknown>;
  readonly lifetime?: number;
  readonly strict?: boolean;
  readonly json?: boolean;
  readonly color: boolean;
}

const LABELS: Readonly<Record<CheckResult['verdict'], string>> = { ok: 'ok', hole: 'HOLE', unchecked: 'unchecked' };
const COLOURS: Readonly<Record<CheckResult['verdict'], Parameters<Paint>[0]>> = {
  ok: 'green',
  hole: 'red',
  unchecked: 'yellow',
};

export function addProbeCommand(program: Command): void {
  program
    .command('probe')
    .summary('attack the requestState of a running server')
    .description('Checks from outside whether an MCP server protects its requestState.')
    .argument('<url>', 'address of the server, such as http://127.0.0.1:3000/mcp', httpUrl)
    .option('--tool <name>', 'call this tool')
    .option('--prompt <name>', 'get this prompt')
    .option('--resource <uri>', 'read this resource')
    .option('--arguments <json>', 'arguments of the call', jsonObject)
    .option(
      '--other-arguments <json>',
      'arguments with which a state must be refused (default: one argument changed)',
      jsonObject,
    )
    .option('--other-resource <uri>', 'resource for which a state must be refused')
    .option('--answers <json>', 'inputResponses of the second round (default: agree)', jsonObject)
    .option('--lifetime <seconds>', 'check that a state has expired after this time', numberIn(0, 86_400, 'number'))
    .option('--strict', 'also exit with code 1 if a check was not made')
    .option('--json', 'print JSON, even on failure')
    .option('--no-color', 'print without colours, as with NO_COLOR=1')
    .addHelpText('after', EXAMPLE)
    .action(async (url: URL, options: ProbeOptions) => {
      const checks = await probed(url, options);
      if (options.json === true) printJson({ url: addressOf(url), passed: passes(checks, options), checks });
      else process.stdout.write(textOf(url, checks, paintFor(process.stdout, options.color)));
      process.exitCode = passes(checks, options) ? EXIT_CODE.done : EXIT_CODE.failed;
    });
}

async function probed(url: URL, options: ProbeOptions): Promise<readonly CheckResult[]> {
  const target = targetOf(options);
  const { answers, lifetime, otherArguments, otherResource } = options;
  if ((target.method === 'resources/read' ? otherArguments : otherResource) !== undefined) {
    throw new UsageError('--other-arguments is for --tool and --prompt, --other-resource for --resource');
  }
  checkOthers(options);
  const other = otherResource === undefined ? { arguments: otherArguments } : { uri: otherResource };
  const hasOther = otherArguments !== undefined || otherResource !== undefined;
  const [token, otherToken] = ['SEALRING_PROBE_TOKEN', 'SEALRING_PROBE_OTHER_TOKEN'].map(accessToken);
  if (token !== undefined && token === otherToken) {
    throw new UsageError(
      'SEALRING_PROBE_TOKEN and SEALRING_PROBE_OTHER_TOKEN must be access tokens of two different users',
    );
  }
  const probe = new Probe(new ProbedServer(url), {
    target,
    otherTarget: hasOther ? { ...target, params: { ...target.params, ...other } } : undefined,
    answers,
    token,
    otherToken,
    lifetimeSeconds: lifetime,
  });
  return await withProgress('probing', () => probe.run());
}

/** A server rightly accepts the state of the same call. @throws {UsageError} if the other call is the same call. */
function checkOthers({ arguments: args = {}, otherArguments, resource, otherResource }: ProbeOptions): void {
  if (otherArguments !== undefined && isDeepStrictEqual(otherArguments, args)) {
    throw new UsageError('--other-arguments must differ from --arguments');
  }
  if (otherResource !== undefined && otherResource === resource) {
    throw new UsageError(`--other-resource "${otherResource}" must differ from --resource`);
  }
}

function targetOf({ tool, prompt, resource, arguments: args }: ProbeOptions): Target {
  if ([tool, prompt, resource].filter((one) => one !== undefined).length !== 1) {
    throw new UsageError('pass exactly one of --tool, --prompt and --resource');
  }
  if (resource !== undefined) {
    if (args !== undefined) throw new UsageError('--arguments is for --tool and --prompt');
    return { method: 'resources/read', params: { uri: resource } };
  }
  const params = { name: tool ?? prompt, ...(args === undefined ? {} : { arguments: args }) };
  return { method: tool === undefined ? 'prompts/get' : 'tools/call', params };
}

function accessToken(variable: string): string | undefined {
  const value = process.env[variable] ?? '';
  if (value === '') return undefined;
  if (!/^[\x21-\x7e]+$/.test(value)) throw new UsageError(`${variable} must be an access token without white space`);
  return value;
}

function passes(checks: readonly CheckResult[], { strict = false }: ProbeOptions): boolean {
  return checks.every(({ verdict }) => verdict === 'ok' || (verdict === 'unchecked' && !strict));
}

function textOf(url: URL, checks: readonly CheckResult[], paint: Paint): string {
  const width = Math.max(...Object.values(LABELS).map((label) => label.length));
  const lines = checks.flatMap(({ id, verdict, what, remedy }) => [
    wrapped(`${paint(COLOURS[verdict], LABELS[verdict].padEnd(width))}  `, `${what} [${id}]`),
    ...(remedy === undefined ? [] : [wrapped(`${' '.repeat(width)}  → `, remedy)]),
  ]);
  const holes = checks.filter(({ verdict }) => verdict === 'hole').length;
  const total = paint(['bold', holes > 0 ? 'red' : 'green'], `${holes} hole${holes === 1 ? '' : 's'}`);
  return [visibleLine(addressOf(url)), '', ...lines, '', total, ''].join('\n');
}

/** The address without its query, which may hold a secret. */
function addressOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** @throws {UsageError} unless it is an http(s) address without a user or a password. */
function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // Text with @ can contain a password, with or without a protocol.
    throw new UsageError(`the address${text.includes('@') ? '' : ` "${text}"`} must be an http:// or https:// URL`);
  }
  // The address is not repeated: it contains a secret.
  if (url.username !== '' || url.password !== '') throw new UsageError('the address must have no user and no password');
  return url;
}

function jsonObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError('It must be a JSON object.');
  }
  return { ...value };
}
