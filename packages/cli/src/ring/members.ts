import type { CodecHealth } from '@sealring/core';
import { askMember } from '@sealring/dashboard';
import { tableOf } from '../terminal/table.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';

/** Longest wait for one server, and longest answer. */
const LIMITS = { timeoutMs: 2_000, maxBytes: 256 * 1024 };

/** What one server says of itself. */
export interface MemberHealth {
  readonly member: string;
  /** What it answered, as far as it has the members of `codec.health()`; absent when it did not. */
  readonly health?: Pick<CodecHealth, 'status' | 'ready' | 'canSeal' | 'canUnseal'> & {
    readonly sealingKey: string | undefined;
    readonly sealUntil: string | undefined;
    readonly lastError: string | undefined;
    /** What needs an operator there. */
    readonly problems: readonly MemberProblem[];
  };
  /** Why there is no answer. */
  readonly failure?: string;
}

/** A problem as a server tells it. */
interface MemberProblem {
  readonly kind: string;
  readonly detail: string;
  readonly remedy: string;
}

/** Problems of one server that are shown: there are fewer kinds. */
const MOST_PROBLEMS = 16;

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
  const answer = await askMember(member, LIMITS);
  if ('failure' in answer) {
    const failure = answer.failure === 'timeout' ? `no answer within ${LIMITS.timeoutMs / 1_000} s` : 'not reachable';
    return { member, failure };
  }
  // A server that is not ready answers 503, and says why.
  const health = healthIn(answer.text ?? '');
  return health === undefined ? { member, failure: `no health in its answer (${answer.status})` } : { member, health };
}

/** What came over the network is believed member by member, and shown as text only. */
function healthIn(text: string): MemberHealth['health'] | undefined {
  const health = parsed(text);
  const { status, ready, canSeal, canUnseal, sealingKey, sealUntil, lastError, problems } = health;
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
    problems: Array.isArray(problems) ? problems.slice(0, MOST_PROBLEMS).flatMap(problemIn) : [],
  };
}

function problemIn(value: unknown): readonly MemberProblem[] {
  const { kind, detail, remedy } = Object(value);
  const isOne = typeof kind === 'string' && typeof detail === 'string' && typeof remedy === 'string';
  return isOne ? [{ kind, detail, remedy }] : [];
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function short(text = '', most = 40): string {
  return visibleLine(text).slice(0, most);
}

/** Of a sentence. */
const MOST_CHARACTERS = 300;

/** A line for each server, and below what needs an operator there. */
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
  const problems = members.flatMap(({ member, health }) =>
    (health?.problems ?? []).map(({ detail, remedy }) => {
      const [what, toDo] = [short(detail, MOST_CHARACTERS), short(remedy, MOST_CHARACTERS)];
      return `problem at ${visibleLine(member)}: ${what}\n  → ${toDo}`;
    }),
  );
  const head = ['member', 'status', 'can', 'seals with', 'seals until', 'last error'];
  return `${[...tableOf([head, ...rows]), ...problems].join('\n')}\n`;
}
