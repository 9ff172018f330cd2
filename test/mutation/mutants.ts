import { readFileSync } from 'node:fs';
import { Instrumenter, type InstrumentResult } from '@stryker-mutator/instrumenter';

type Mutant = InstrumentResult['mutants'][number];

/** A small change of the source, and where. */
export interface SourceChange {
  readonly id: string;
  /** The path from the root of the repository. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The replacement. */
  readonly replacement: string;
  /** The same wherever it is in the file: the file, the line and its replacement. */
  readonly text: string;
}

/** The part of a babel path that is used here. */
interface CallPath {
  readonly node: { readonly type: string; readonly callee?: { readonly name?: string } };
}

/*
 * The words of an error are for people: a test asserts its kind (docs: Contributing). A name that makes an error is a
 * class or one of these.
 */
const MAKES_AN_ERROR =
  /(?:Error|Refusal|InvalidRequestState|Finding)$|^(?:corrupt|failure|refusal|codecFailure|wrongType|outOfRange)$/;

const wordsOfErrors = {
  shouldIgnore(path: unknown): string | undefined {
    const { node } = path as CallPath;
    const makes = /^(?:New|Call)Expression$/.test(node.type) && MAKES_AN_ERROR.test(node.callee?.name ?? '');
    return makes ? 'the words of an error' : undefined;
  },
};

const silent = { isTraceEnabled: no, isDebugEnabled: no, isInfoEnabled: no, isWarnEnabled: no, isErrorEnabled: no };
const quiet = { trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing, fatal: nothing };

/**
 * Writes every small change into the source of the files at once, each behind a switch: `globalThis.__stryker__` names
 * the active one, and records those that ran.
 */
export async function withMutants(
  root: URL,
  files: readonly string[],
): Promise<{ readonly sources: ReadonlyMap<string, string>; readonly changes: readonly SourceChange[] }> {
  const logger = { ...silent, ...quiet, isFatalEnabled: no };
  const given = files.map((name) => ({ name, mutate: true, content: readFileSync(new URL(name, root), 'utf8') }));
  const options = { plugins: null, excludedMutations: [], ignorers: [wordsOfErrors], noHeader: false };
  const result = await new Instrumenter(logger).instrument(given, options);
  const linesOf = new Map(given.map(({ name, content }) => [name, content.split('\n')]));
  return {
    sources: new Map(result.files.map(({ name, content }) => [name, content])),
    // Changes that must not be tried have a status already.
    changes: result.mutants.filter(({ status }) => status === undefined).map((mutant) => changeOf(mutant, linesOf)),
  };
}

function changeOf(
  { id, fileName, location, replacement }: Mutant,
  linesOf: ReadonlyMap<string, readonly string[]>,
): SourceChange {
  const line = linesOf.get(fileName)?.[location.start.line] ?? '';
  const becomes = replacement.replaceAll(/\s+/g, ' ');
  // Babel counts lines from 0 here, and columns too.
  return {
    id,
    file: fileName,
    line: location.start.line + 1,
    column: location.start.column + 1,
    replacement: becomes,
    text: `${fileName} ${line.trim()} ${location.start.column - line.search(/\S/)} ${becomes}`,
  };
}

function no(): boolean {
  return false;
}

function nothing(): void {}
