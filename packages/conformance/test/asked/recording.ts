import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { types } from 'node:util';
import { afterAll } from 'vitest';

/** The distinct calls that a requirement makes: their number, and the first 48 bits of their SHA-256, in hexadecimal. */
export interface Asked {
  readonly calls: number;
  readonly digest: string;
}

type Table = Record<string, Asked>;

const RECORD = new URL('asked.json', import.meta.url);
/** `SEALRING_RECORD=1` writes the record instead of comparing with it. */
const IS_RECORDING = process.env['SEALRING_RECORD'] === '1';
const recorded: Readonly<Record<string, Table>> = JSON.parse(readFileSync(RECORD, 'utf8'));
const made: Record<string, Table> = {};

/** Collects the calls of one requirement. The order and the number of equal calls depend on the machine. */
export class Calls {
  readonly #seen = new Set<string>();

  note(of: string, [name, given]: readonly [name: string, given: readonly unknown[]]): void {
    this.#seen.add(sha256([of, name, ...given].map(canonical).join('\n')));
  }

  get asked(): Asked {
    return { calls: this.#seen.size, digest: sha256([...this.#seen].toSorted().join('\n')).slice(0, 12) };
  }
}

/** The recorded calls of a requirement, or those that were seen while recording. */
export function recordedCalls(suite: string, id: string, asked: Asked): Asked | undefined {
  if (!IS_RECORDING) return recorded[suite]?.[id];
  made[suite] = { ...made[suite], [id]: asked };
  return asked;
}

afterAll(() => {
  if (!IS_RECORDING) return;
  const byId = (table: Table): Table =>
    Object.fromEntries(Object.entries(table).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const tables = Object.entries({ ...recorded, ...made }).map(([suite, table]) => [suite, byId(table)] as const);
  writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(tables), undefined, 2)}\n`);
});

/** What differs between runs: names of rings, which contain the process and the time, and revisions. */
const VARYING: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/kit-\d+-[a-z0-9]+-[a-z0-9]+?(?=$|[^a-z0-9])/gi, 'NAME'],
  [/revision-\d+/g, 'REVISION'],
];

function canonical(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(VARYING.reduce((text, [pattern, name]) => text.replaceAll(pattern, name), value));
  }
  if (types.isUint8Array(value)) return `bytes ${sha256(value)}`;
  if (value instanceof AbortSignal) return `signal ${value.aborted ? 'aborted' : ''}`;
  if (value instanceof Date) return 'date';
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return `${typeof value} ${String(value)}`;
  const members = Object.entries(value).map(([name, member]) => `${canonical(name)}: ${canonical(member)}`);
  return `${Object.prototype.toString.call(value)} {${members.toSorted().join(', ')}}`;
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
