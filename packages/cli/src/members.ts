import type { CodecHealth } from '@sealring/core';
import { boundedText } from './bounded-text.ts';
import { tableOf } from './table.ts';
import { UsageError } from './usage-error.ts';
import { visibleLine } from './visible.ts';

/** Longest wait for one server, and longest answer. */
const TIMEOUT_MS = 2_000;
const MOST_BYTES = 256 * 1024;

/** What one server says of itself. */
export interface MemberHealth {
  readonly member: string;
  /** What it answered, as far as it has the members of `codec.health()`; absent when it did not. */
  readonly health?: Pick<CodecHealth, 'status' | 'ready' | 'canSeal' | 'canUnseal'> & {
    readonly sealingKey: string | undefined;
    readonly sealUntil: string | undefined;
    readonly lastError: string | undefined;
  };
  /** Why there is no answer. */
  readonly failure?: string;
}

/** @throws {UsageError} unless it is an http(s) address without a password. */
export function checkMemberUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--member "${text}" must be an address that starts with http:// or https://`);
  }
  // Not repeated: it is a secret on a command line.
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--member must have no user and no password in it');
  return text;
}

/** Asks every server at once what `codec.health()` says there. Never rejects: a server that is away is a finding. */
export function askMembers(urls: readonly string[]): Promise<readonly MemberHealth[]> {
  return Promise.all(urls.map(ask));
}

async function ask(member: string): Promise<MemberHealth> {
  try {
    const response = await fetch(member, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    // A server that is not ready answers 503, and says why.
    const health = healthIn((await boundedText(response, MOST_BYTES)) ?? '');
    return health === undefined
      ? { member, failure: `no health in its answer (${response.status})` }
      : { member, health };
  } catch (error) {
    const isSlow = error instanceof Error && error.name === 'TimeoutError';
    return { member, failure: isSlow ? `no answer within ${TIMEOUT_MS / 1_000} s` : 'not reachable' };
  }
}

/** What came over the network is believed member by member, and shown as text only. */
function healthIn(text: string): MemberHealth['health'] | undefined {
  const health = parsed(text);
  const { status, ready, canSeal, canUnseal, sealingKey, sealUntil, lastError } = health;
  if (status !== 'ok' && status !== 'degraded' && status !== 'failing') return undefined;
  const kind = Object(lastError)['kind'];
  return {
    status,
    ready: ready === true,
    canSeal: canSeal === true,
    canUnseal: canUnseal === true,
    sealingKey: typeof sealingKey === 'string' ? sealingKey : undefined,
    sealUntil: typeof sealUntil === 'string' ? sealUntil : undefined,
    lastError: typeof kind === 'string' ? kind : undefined,
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function short(text = ''): string {
  return visibleLine(text).slice(0, 40);
}

/** A line for each server. */
export function membersText(members: readonly MemberHealth[]): string {
  const rows = members.map(({ member, health, failure }) =>
    health === undefined
      ? [visibleLine(member), failure ?? '', '', '', '', '']
      : [
          visibleLine(member),
          health.status,
          `${health.canSeal ? 'seals' : '-'} ${health.canUnseal ? 'opens' : '-'}`,
          short(health.sealingKey),
          short(health.sealUntil),
          short(health.lastError),
        ],
  );
  return `${tableOf([['member', 'status', 'can', 'seals with', 'seals until', 'last error'], ...rows]).join('\n')}\n`;
}
