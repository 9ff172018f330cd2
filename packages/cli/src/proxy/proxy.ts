import { once } from 'node:events';
import type { KmsCodec, SingleUseStore } from '@sealring/core';
import type * as SealringMcp from '@sealring/mcp';
import { rejectedOptionIn } from '../foreign-error.ts';
import { HealthServer } from '../health/health-server.ts';
import { openForServer } from '../ring/open.ts';
import { loadPackage } from '../settings/adapter-packages.ts';
import type { SealringConfig } from '../settings/settings.ts';
import { UsageError } from '../usage-error.ts';
import { Listener } from './listener.ts';
import { type PrincipalSource, principalBinder } from './principal.ts';
import { type Exchange, Upstream, type UpstreamTimeouts } from './upstream.ts';

/** The server behind a proxy, and how the proxy protects it. */
export interface ProxyOptions {
  readonly upstream: URL;
  readonly audience: string;
  readonly principal: PrincipalSource;
  readonly ttlSeconds: number;
  readonly maxRequestBytes: number;
  readonly timeouts: UpstreamTimeouts;
  readonly graceMs: number;
  readonly host: string;
  readonly port: number;
  readonly healthPort: number | undefined;
  readonly allowedHosts: readonly string[];
}

/** Reports of the running proxy, without any part of a token or a state. */
export type ProxyEvent =
  | { readonly event: 'health'; readonly url: string }
  | { readonly event: 'listening'; readonly url: string; readonly upstream: string; readonly audience: string }
  | { readonly event: 'failure'; readonly message: string }
  | { readonly event: 'stopping' };

interface Running {
  readonly stop: AbortSignal;
  readonly report: (event: ProxyEvent) => void;
}

/**
 * Runs a proxy until `stop` is aborted and its requests have ended.
 * @throws {Failure | UsageError} if it cannot start.
 */
export async function runProxy(
  config: SealringConfig,
  options: ProxyOptions,
  { stop, report }: Running,
): Promise<void> {
  if (config.role === 'reader')
    throw new UsageError('the proxy seals tokens: the configuration must have role "member"');
  const mcp = (await loadPackage('@sealring/mcp', 'sealring proxy')) as unknown as typeof SealringMcp;
  let codec: KmsCodec | undefined;
  const health = (): { readonly ready: boolean } =>
    codec === undefined || stop.aborted ? { ready: false } : codec.health();
  const probes = new HealthServer(health);
  try {
    if (options.healthPort !== undefined) {
      report({ event: 'health', url: await probes.listen(options.host, options.healthPort) });
    }
    codec = await openForServer(config, stop);
    await serve(mcp, { codec, singleUse: config.singleUse }, options, { stop, report });
  } catch (error) {
    // The proxy was stopped before it had started.
    if (error !== stop.reason) throw error;
  } finally {
    await codec?.close();
    probes.close();
  }
}

/** The codec that seals states, and the store of redeemed tokens. */
interface Sealing {
  readonly codec: KmsCodec;
  readonly singleUse: SingleUseStore | undefined;
}

async function serve(
  mcp: typeof SealringMcp,
  sealing: Sealing,
  options: ProxyOptions,
  { stop, report }: Running,
): Promise<void> {
  const { principal, host, allowedHosts, timeouts } = options;
  const upstream = new Upstream(options.upstream, timeouts);
  try {
    const listener = new Listener({
      origin: options.upstream.origin,
      host,
      allowedHosts,
      // A client neither sends nor reads anything while the proxy waits for the upstream server.
      stalledMs: timeouts.responseMs + timeouts.idleMs,
      singleHeaders: ['host', 'authorization', ...(principal === null ? [] : [principal.header])],
      handler: protectedBy(mcp, sealing, upstream, options, report),
      onFailure: (message) => report({ event: 'failure', message }),
    });
    const url = await listener.listen(options.port);
    report({ event: 'listening', url, upstream: options.upstream.origin, audience: options.audience });
    if (!stop.aborted) await once(stop, 'abort');
    report({ event: 'stopping' });
    await listener.stop(options.graceMs);
  } finally {
    upstream.close();
  }
}

/** @throws {UsageError} for an option that the package rejects, such as a lifetime longer than that of the ring's keys. */
function protectedBy(
  { protectFetch, RequestStateSecurity }: typeof SealringMcp,
  { codec, singleUse }: Sealing,
  upstream: Upstream,
  { audience, principal, ttlSeconds, maxRequestBytes }: ProxyOptions,
  report: Running['report'],
): (request: Request, exchange: Exchange) => Promise<Response> {
  const bindPrincipal = principalBinder(principal, (message) => report({ event: 'failure', message }));
  try {
    const security = new RequestStateSecurity({
      codec,
      audience,
      ttlSeconds,
      bindPrincipal: null,
      ...(singleUse !== undefined && { singleUse }),
    });
    return protectFetch((request: Request, exchange: Exchange) => upstream.fetch(request, exchange), security, {
      bindPrincipal,
      maxRequestBytes,
      onerror: ({ message }) => report({ event: 'failure', message }),
    });
  } catch (error) {
    const rejection = rejectedOptionIn(error);
    if (rejection === undefined) throw error;
    throw new UsageError(rejection);
  }
}
