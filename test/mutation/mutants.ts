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
interface SourcePath {
  readonly node: {
    readonly type: string;
    readonly callee?: { readonly name?: string; readonly property?: { readonly name?: string } };
    readonly id?: { readonly name?: string };
  };
  /** The position among the arguments of a call. */
  readonly key?: unknown;
  readonly listKey?: unknown;
  readonly parent?: SourcePath['node'];
}

/*
 * The text of an error is for people, so it is not mutated: tests assert the kind (CONTRIBUTING.md). A call with the
 * name of an error class, or with one of these names, makes an error.
 */
const MAKES_AN_ERROR =
  /(?:Error|Refusal|InvalidRequestState|Finding)$|^(?:corrupt|failure|refusal|codecFailure|wrongType|outOfRange)$/;

/** Nor is the text of the doctor's findings and of options, which follows an id or the flags. */
const TAKES_WORDS_LAST = /^(?:ok|info|warning|error|option|Option)$/;

/** Nor are help texts. */
const TAKES_WORDS = /^(?:summary|description|argument|addHelpText)$/;
const ARE_WORDS = /^(?:[A-Z]+_)?(?:EXAMPLE|AFTER|USAGE|HELP)$/;

const wordsForPeople = {
  shouldIgnore({ node, key, listKey, parent }: SourcePath): string | undefined {
    const name = nameOfCall(node);
    const isError = name !== undefined && MAKES_AN_ERROR.test(name);
    const isHelp = TAKES_WORDS.test(name ?? '') || ARE_WORDS.test(node.id?.name ?? '');
    const isText = /^(?:String|Template)Literal$/.test(node.type) && listKey === 'arguments' && Number(key) >= 1;
    const isFinding = isText && TAKES_WORDS_LAST.test((parent && nameOfCall(parent)) ?? '');
    return isError || isHelp || isFinding ? 'words for people' : undefined;
  },
};

/** The name of the function, class or method. */
function nameOfCall({ type, callee }: SourcePath['node']): string | undefined {
  if (!/^(?:New|Call)Expression$/.test(type)) return undefined;
  return callee?.name ?? callee?.property?.name;
}

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
  const options = { plugins: null, excludedMutations: [], ignorers: [wordsForPeople], noHeader: false };
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
