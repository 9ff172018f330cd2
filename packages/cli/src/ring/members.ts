import type { CodecHealth } from '@sealring/core';
import { askMember } from '@sealring/dashboard';
import { wrapped } from '../terminal/page.ts';
import { tableOf } from '../terminal/table.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { keyName } from './key-name.ts';

/** Longest wait for one server, and longest answer. */
const LIMITS = { timeoutMs: 2_000, maxBytes: 256 * 1024 };

/** The health that one server reports. */
export interface MemberHealth {
  readonly member: string;
  /** The fields of `codec.health()` in its answer; absent if there was no such answer. */
  readonly health?: Pick<CodecHealth, 'status' | 'ready' | 'canSeal' | 'canUnseal'> & {
    /** The name of the key. */
    readonly sealingKey: string | undefined;
    readonly sealUntil: string | undefined;
    readonly lastError: string | undefined;
    /** Problems that an operator must solve. */
    readonly problems: readonly MemberProblem[];
  };
  /** Why there is no usable answer. */
  readonly failure?: string;
}

/** A problem that a server reports. */
interface MemberProblem {
  readonly kind: string;
  readonly detail: string;
  readonly remedy: string;
}

/** The most problems that are shown for one server: more than there are kinds of problems. */
const MAX_PROBLEMS = 16;

/** @throws {UsageError} unless it is an http(s) address without a user or a password. */
export function checkMemberUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // Text with @ can contain a password, with or without a protocol.
    const shown = text.includes('@') ? '' : ` "${text}"`;
    throw new UsageError(`--member${shown} must be an http:// or https:// address`);
  }
  // The address is not repeated: it contains a secret.
  if (url.username !== '' || url.password !== '') {
    throw new UsageError('--member must not contain a user or a password');
  }
  return text;
}

/** Asks every server for its `codec.health()`, all at once. Never rejects: the result shows whether a server answered. */
export function askMembers(urls: readonly string[]): Promise<readonly MemberHealth[]> {
  return Promise.all(urls.map(ask));
}

async function ask(member: string): Promise<MemberHealth> {
  const answer = await askMember(member, LIMITS);
  if ('failure' in answer) {
    const failure = answer.failure === 'timeout' ? `no answer within ${LIMITS.timeoutMs / 1_000} s` : 'not reachable';
    return { member, failure };
  }
  // A server that is not ready answers with status 503 and its health.
  const health = healthIn(answer.text ?? '');
  return health === undefined
    ? { member, failure: `answered with status ${answer.status}, but without codec.health()` }
    : { member, health };
}

/** Checks each field of an answer, which anyone on the network could have sent. */
function healthIn(text: string): MemberHealth['health'] | undefined {
  const health = parsed(text);
  const { status, ready, canSeal, canUnseal, sealingKey, sealUntil, lastError, problems } = health;
  if (status !== 'ok' && status !== 'degraded' && status !== 'failing') return undefined;
  const { source, kind } = Object(lastError);
  return {
    status,
    ready: ready === true,
    canSeal: canSeal === true,
    canUnseal: canUnseal === true,
    sealingKey: typeof sealingKey === 'string' ? keyName(sealingKey) : undefined,
    sealUntil: typeof sealUntil === 'string' ? sealUntil : undefined,
    lastError: typeof source === 'string' && typeof kind === 'string' ? `${source} ${kind}` : undefined,
    problems: Array.isArray(problems) ? problems.slice(0, MAX_PROBLEMS).flatMap(problemIn) : [],
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

function short(text = '', max = 40): string {
  return visibleLine(text).slice(0, max);
}

/** The longest part of a problem or a remedy that is shown, in characters. */
const MAX_CHARACTERS = 300;

/** Whether a server answered that it works without restrictions. */
export function isWell({ health }: MemberHealth): boolean {
  return health?.status === 'ok' && health.problems.length === 0;
}

/** A line for each server, followed by the problems of all servers. */
export function membersText(members: readonly MemberHealth[]): string {
  const rows = members.map(({ member, health, failure }) =>
    health === undefined
      ? [visibleLine(member), failure ?? '', '', '', '', '']
      : [
          visibleLine(member),
          health.status,
          `${health.canSeal ? 'seals' : '-'} ${health.canUnseal ? 'unseals' : '-'}`,
          short(health.sealingKey),
          short(health.sealUntil),
          short(health.lastError),
        ],
  );
  const problems = members.flatMap(({ member, health }) =>
    (health?.problems ?? []).flatMap(({ detail, remedy }) => {
      const [what, remedyText] = [short(detail, MAX_CHARACTERS), short(remedy, MAX_CHARACTERS)];
      return [wrapped('', `problem at ${visibleLine(member)}: ${what}`), wrapped('  → ', remedyText)];
    }),
  );
  const head = ['member', 'status', 'can', 'sealing key', 'seals until', 'last error'];
  return `${[...tableOf([head, ...rows]), ...problems].join('\n')}\n`;
}
