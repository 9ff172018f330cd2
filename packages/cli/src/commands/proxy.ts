import { type Command, InvalidArgumentError } from 'commander';
import { isHeaderName } from '../proxy/headers.ts';
import { BY_AUTHORIZATION, type PrincipalSource } from '../proxy/principal.ts';
import { type ProxyEvent, runProxy } from '../proxy/proxy.ts';
import { logJson } from '../terminal/log-json.ts';
import { stopSignal } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, portOption } from './options.ts';

const DAY = 86_400;

const EXAMPLE = `
Seals every requestState in the answers of an MCP server, and verifies every
requestState in requests before the server gets them. The server may use any
language and framework. A request that JSON parsers could read in different ways
is answered with status 400. Other requests pass unchanged.

A state is bound to the user. Choose how the proxy finds out who the user is:
  --principal-header NAME     a header that a gateway sets after it has verified
                              the access token. Clients must not be able to
                              bypass the gateway: they could name any user.
  --principal-authorization   a hash of the Authorization header. A state is
                              valid only with the same access token.
  --no-principal              the server has no users.

/livez and /readyz on --health-port answer the probes of an orchestrator. On
SIGTERM, the proxy waits up to --grace seconds for requests in progress to end.
Requires the package @sealring/mcp.

Example:
  $ npx sealring init --local
  $ npx sealring proxy --upstream http://127.0.0.1:8000 --port 8080 \\
      --audience refund-desk --principal-authorization
`;

interface ProxyCommandOptions extends CommonOptions {
  readonly upstream: URL;
  readonly audience: string;
  readonly principalHeader?: string;
  readonly principalAuthorization?: boolean;
  readonly principal: boolean;
  readonly port: number;
  readonly host: string;
  readonly allowHost?: readonly string[];
  readonly healthPort?: number;
  readonly ttl: number;
  readonly maxRequestBytes: number;
  readonly responseTimeout: number;
  readonly idleTimeout: number;
  readonly grace: number;
}

export function addProxyCommand(program: Command): void {
  const port = numberIn(0, 65_535, 'whole number');
  addCommonOptions(
    program
      .command('proxy')
      .summary('protect an MCP server written in any language')
      .description('Runs a proxy that protects the requestState of the MCP server behind it.')
      .requiredOption(
        '--upstream <url>',
        'URL of the server to protect, without a path, such as http://127.0.0.1:8000',
        origin,
      )
      .requiredOption(
        '--audience <name>',
        'name of the service that the tokens are for; different for each service',
        nonEmpty,
      )
      .option('--principal-header <name>', 'bind states to this header, which a gateway sets', headerName)
      .option('--principal-authorization', 'bind states to the Authorization header')
      .option('--no-principal', 'bind states to no user')
      .addOption(portOption())
      .option('--host <address>', 'address to listen on', '127.0.0.1')
      .option(
        '--allow-host <name>',
        'accepted host name; can be repeated (default: any; on a loopback --host, localhost and addresses)',
        (name: string, names: readonly string[] | undefined) => [...(names ?? []), name],
      )
      .option('--health-port <number>', 'port for /livez and /readyz (default: none)', port)
      .option('--ttl <seconds>', 'lifetime of a token', numberIn(1, 365 * DAY), 600)
      .option('--max-request-bytes <n>', 'largest JSON request', numberIn(1, 2 ** 30, 'whole number'), 4_194_304)
      .option('--response-timeout <seconds>', 'longest wait for an answer to begin', numberIn(1, DAY), 120)
      .option('--idle-timeout <seconds>', 'longest pause within an answer', numberIn(1, DAY), 300)
      .option('--grace <seconds>', 'longest wait for requests in progress after SIGTERM', numberIn(0, DAY), 25),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (options: ProxyCommandOptions) => {
      const principal = principalOf(options);
      const { config: file, json = false, allowHost: allowedHosts = [], ttl: ttlSeconds, grace } = options;
      const { responseTimeout, idleTimeout } = options;
      const stop = stopSignal();
      await withSettings(file, ({ config }) =>
        runProxy(
          config,
          {
            upstream: options.upstream,
            audience: options.audience,
            principal,
            ttlSeconds,
            maxRequestBytes: options.maxRequestBytes,
            timeouts: { responseMs: responseTimeout * 1_000, idleMs: idleTimeout * 1_000 },
            graceMs: grace * 1_000,
            host: options.host,
            port: options.port,
            healthPort: options.healthPort,
            allowedHosts,
          },
          { stop, report: json ? logJson : reportText },
        ),
      );
    });
}

/** @throws {UsageError} unless exactly one way to find the user was chosen. */
function principalOf({ principalHeader, principalAuthorization, principal }: ProxyCommandOptions): PrincipalSource {
  const chosen = [principalHeader !== undefined, principalAuthorization === true, !principal].filter(Boolean).length;
  if (chosen !== 1) {
    throw new UsageError('pass exactly one of --principal-header <name>, --principal-authorization and --no-principal');
  }
  if (principalHeader !== undefined) return { header: principalHeader };
  return principalAuthorization === true ? BY_AUTHORIZATION : null;
}

function reportText(event: ProxyEvent): void {
  const stream = event.event === 'failure' ? process.stderr : process.stdout;
  stream.write(`${visibleLine(textOf(event))}\n`);
}

function textOf(event: ProxyEvent): string {
  switch (event.event) {
    case 'health':
      return `answering probes at ${event.url}/readyz`;
    case 'listening':
      return `protecting ${event.upstream} at ${event.url} for the audience ${event.audience}, until Ctrl-C`;
    case 'failure':
      return event.message;
    case 'stopping':
      return 'stopping: waiting for requests in progress';
  }
}

function origin(text: string): URL {
  // Text with @ can contain a password, and the message of an InvalidArgumentError would repeat it.
  if (text.includes('@')) throw new UsageError('--upstream must be an http(s) URL without a user and a password');
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new InvalidArgumentError('It must be an http(s) URL.');
  if (url.href !== `${url.origin}/`) {
    throw new InvalidArgumentError('It must end after the port: the proxy appends the path of each request.');
  }
  return url;
}

function headerName(text: string): string {
  if (isHeaderName(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be the name of a header.');
}

function nonEmpty(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('It must not be empty.');
}
