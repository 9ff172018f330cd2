import { pythonVenv } from '../support/python-venv.ts';
import { CONTENDERS, startContender } from './contenders/index.ts';
import { type Cost, FLOORS, measureTokenPath, OPERATIONS, OURS } from './token-path.ts';
import type { Verdict } from './verdict.ts';

/** Bytes of a typical claims envelope with a small state. */
const HEADLINE_BYTES = 358;
export const SIZES: readonly number[] = [64, HEADLINE_BYTES, 4_096, 49_152];
/** The module of the interpreter that represents the MCP Python SDK. */
export const PYTHON_SDK = { package: 'mcp', version: '2.3.0' } as const;
const PYTHON_NOTE = 'the AES-GCM codec of the MCP Python SDK, running on Python: for information only';

/** The highest ratio to a floor. */
const LIMITS: Readonly<Record<string, Readonly<Record<Cost['operation'], number>>>> = {
  'bare cipher': { seal: 1.25, unseal: 1.15 },
  'plain codec': { seal: 0.75, unseal: 1.1 },
};
/** The least ratio of a peer to Sealring. */
export const LEADS: Readonly<Record<string, number>> = {
  'TypeScript SDK': 10,
  jose: 15,
  '@hapi/iron': 15,
  'iron-webcrypto': 15,
  'AWS Encryption SDK': 30,
};

export interface TokenPathChoice {
  readonly sizes: readonly number[];
  readonly rounds: number;
  /** Milliseconds. */
  readonly turn: number;
  /** Default: all contenders. */
  readonly only?: readonly string[];
  readonly python: boolean;
}

export interface TokenPathReport {
  readonly rounds: number;
  readonly turnMilliseconds: number;
  readonly headlineBytes: number;
  readonly contenders: readonly { readonly name: string; readonly note: string }[];
  readonly costs: readonly Cost[];
}

export async function reportTokenPath(
  { sizes, rounds, turn, only, python }: TokenPathChoice,
  progress: (done: number) => void,
): Promise<TokenPathReport> {
  const wanted = only === undefined ? undefined : new Set([OURS, ...FLOORS, ...only]);
  const names = Object.keys(CONTENDERS).filter((name) => wanted?.has(name) ?? true);
  const headlineBytes = sizes.includes(HEADLINE_BYTES) ? HEADLINE_BYTES : (sizes[0] ?? HEADLINE_BYTES);
  const requirement = `${PYTHON_SDK.package}==${PYTHON_SDK.version}`;
  const costs = await measureTokenPath({
    contenders: names,
    python: python ? `${await pythonVenv('python-sdk', [requirement])}/python` : undefined,
    sizes,
    rounds,
    turnMilliseconds: turn,
    headlineBytes,
    progress,
  });
  const contenders = [];
  for (const name of new Set(costs.map(({ contender }) => contender))) {
    contenders.push({ name, note: names.includes(name) ? await noteOf(name) : PYTHON_NOTE });
  }
  return { rounds, turnMilliseconds: turn, headlineBytes, contenders, costs };
}

async function noteOf(name: string): Promise<string> {
  const contender = await startContender(name);
  await contender.close?.();
  return contender.note;
}

export function judgeTokenPath({ costs, headlineBytes }: TokenPathReport): readonly Verdict[] {
  const judged = costs.filter(({ bytes }) => bytes === headlineBytes);
  return judged.flatMap((cost): readonly Verdict[] => {
    const { contender: name, operation, timesOurs, timesOursAtP50 } = cost;
    const most = LIMITS[name]?.[operation];
    // The printed numbers decide.
    if (most !== undefined) {
      const measured = Number((1 / timesOurs.median).toFixed(2));
      const law = `${operation} by Sealring, as a multiple of the ${name}, at most`;
      return [{ law, limit: most, measured, met: measured <= most }];
    }
    const lead = LEADS[name];
    if (lead === undefined) return [];
    const atP50 = Number(timesOursAtP50.median.toFixed(1));
    const ours = judged.find((other) => other.contender === OURS && other.operation === operation)?.p999;
    // If too few of a contender's operations were timed, its p99 is used instead, which is the smaller number.
    const atP999 = Number(((cost.p999 ?? cost.p99) / (ours ?? Number.NaN)).toFixed(2));
    return [
      {
        law: `${operation} by ${name}, as a multiple of Sealring's p50, at least`,
        limit: lead,
        measured: atP50,
        met: atP50 >= lead,
      },
      {
        law: `${operation} by ${name}, as a multiple of Sealring's p99.9, more than`,
        limit: 1,
        measured: atP999,
        met: atP999 > 1,
      },
    ];
  });
}

/** A table for a terminal. */
export function shownTokenPath({ costs }: TokenPathReport): string {
  const lines: string[] = [];
  for (const bytes of new Set(costs.map((cost) => cost.bytes))) {
    for (const operation of OPERATIONS) {
      const head = `${operation}, ${bytes} bytes`.padEnd(24);
      lines.push('', `${head} × ours (95 %)            p50      p99    p99.9     GC  token  memory`);
      lines.push(...costs.filter((one) => one.bytes === bytes && one.operation === operation).map(row));
    }
  }
  return [...lines, '', ''].join('\n');
}

function row({ contender: name, timesOurs, p50, p99, p999, collecting, tokenLength, memory }: Cost): string {
  const times = `${timesOurs.median.toFixed(2)} (${timesOurs.low.toFixed(2)}–${timesOurs.high.toFixed(2)})`;
  const micros = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(1)).padStart(9);
  const bytes = memory === undefined ? '' : `${Math.round(memory.heap)} + ${Math.round(memory.external)} B`;
  return `${name.padEnd(24)} ${times.padEnd(20)}${micros(p50)}${micros(p99)}${micros(p999)} ${collecting.toFixed(2).padStart(6)} ${String(tokenLength).padStart(6)}  ${bytes}`;
}
