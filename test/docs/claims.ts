import type { WrittenTest } from './written-tests.ts';

/** A row of docs/claims.md. */
export interface Claim {
  readonly claim: string;
  /** The document, from the root of the repository, and the section in it, as in a link. */
  readonly document: string;
  readonly section: string;
  /** The quotation from the document. */
  readonly quote: string;
  readonly file: string;
  readonly title: string;
}

/** A sentence that looks like a claim but is not. */
interface Exemption {
  readonly document: string;
  readonly quote: string;
}

export interface ClaimsPage {
  readonly claims: readonly Claim[];
  readonly exemptions: readonly Exemption[];
  /** Table rows that are neither claims nor exemptions. */
  readonly unread: readonly string[];
}

const CLAIM = /^\| (.+) \| \[[^\]]+\]\(([^)#]+)#?([^)]*)\): “(.+)” \| `([^`]+)`: “(.+)” \|$/;
const EXEMPTION = /^\| \[[^\]]+\]\(([^)#]+)\): “(.+)” \| (.+) \|$/;

export function readClaims(page: string): ClaimsPage {
  const claims: Claim[] = [];
  const exemptions: Exemption[] = [];
  const unread: string[] = [];
  for (const line of page.split('\n')) {
    if (!line.startsWith('|') || /^\|(?:-+\|)+$/.test(line) || /^\| (?:claim|said in) \|/.test(line)) continue;
    const [, claim, link, section = '', quote, file, title] = CLAIM.exec(line)?.map(unescaped) ?? [];
    const [, other, words] = EXEMPTION.exec(line)?.map(unescaped) ?? [];
    if (claim !== undefined && link !== undefined && quote !== undefined && file !== undefined && title !== undefined) {
      claims.push({ claim, document: fromRoot(link), section, quote, file, title });
    } else if (other !== undefined && words !== undefined) exemptions.push({ document: fromRoot(other), quote: words });
    else unread.push(line);
  }
  return { claims, exemptions, unread };
}

/** The defects of a claim, in words; empty if it is valid. */
export function wrongWith(
  { section, quote, file, title }: Claim,
  document: string | undefined,
  tests: readonly WrittenTest[] | undefined,
): readonly string[] {
  return [wrongQuote(section, quote, document), wrongTest(file, title, tests)].filter((wrong) => wrong !== undefined);
}

function wrongQuote(section: string, quote: string, document: string | undefined): string | undefined {
  if (document === undefined) return 'there is no such document';
  if (!saidBy(document).includes(quote)) return 'the document does not say so';
  return isIn(section, quote, document) ? undefined : 'it is said in another section';
}

function wrongTest(file: string, title: string, tests: readonly WrittenTest[] | undefined): string | undefined {
  if (tests === undefined) return `there is no ${file}`;
  const found = tests.filter((test) => test.title === title);
  if (found.length === 0) return 'the file has no test of that title';
  return found.some(({ isIdle }) => isIdle) ? 'the test is skipped, or to be written' : undefined;
}

/** A text on one line. */
function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

/** The text of a document on one line; for a source without comment markers. */
function saidBy(document: string): string {
  return `${flat(document)}\n${flat(document.replaceAll(/^\s*(?:\/\*\*|\*(?= )|\/\/)/gm, ''))}`;
}

/** Whether the words are below the heading that a link names, or anywhere if it names none. */
function isIn(section: string, quote: string, document: string): boolean {
  if (section === '') return true;
  const parts = document.replaceAll(CODE, (code) => code.replaceAll(/^#/gm, ' #')).split(/^(?=#{1,6} )/m);
  return parts.some((part) => anchorOf(part.split('\n')[0] ?? '') === section && flat(part).includes(quote));
}

/** Makes the anchor of a heading in the same way as GitHub. */
function anchorOf(heading: string): string {
  return heading
    .replace(/^#+ /, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

const CODE = /^```.*?^```$/gms;
/** Generated text, and rows that name their test, which other tests check. */
const HELD_ELSEWHERE = /^<!-- (\w+)[^\n]* -->$.*?^<!-- \/\1 -->$|^\| [^\n]*(?:\bF\d+\b|\.test\.ts)[^\n]*$/gms;

/** A number with a unit, or a word that excludes exceptions. */
const LIKE_A_CLAIM =
  /(?<![\w.-])\d[\d .]*(?:×|\^\d+)? ?(?:s|ms|seconds?|minutes?|min|hours?|h|days?|characters|bytes|KiB|MiB|MB|kB|keys|calls|tokens|members|servers|%)(?!\w)|\b(?:never|always|at most|at least|exactly|at the (?:latest|longest))\b|\b(?:two|three|four|five|six|nine|ten|eleven|fourteen|twenty|hundred) (?:commands|calls|minutes|seconds|hours|times|years|deploys)\b|\bhalf a second\b/i;

/** Sentences of a document that look like claims, and that no claim quotes. */
export function unlisted(document: string, quotes: readonly string[]): readonly string[] {
  const prose = document
    .replaceAll(CODE, '')
    .replaceAll(/^#{1,6} .*$|^!\[.*$|^\*\*[^*]+\*\*$/gm, '')
    .replaceAll(HELD_ELSEWHERE, '');
  const blocks = prose.split(/\n\s*\n|\n(?=\||[*#-] |\d+\. )/).map((block) => flat(block).trim());
  const text = blocks.join('\n');
  const quoted = quotes.flatMap((quote) => spansOf(quote, text));
  const sentences = blocks.flatMap((block) => (block.startsWith('|') ? [block] : block.split(/(?<=[.;!?]["”*]*) /)));
  return [...new Set(sentences)].filter((sentence) => {
    if (!LIKE_A_CLAIM.test(sentence)) return false;
    return spansOf(sentence, text).some(([from, to]) => !quoted.some(([start, end]) => start < to && from < end));
  });
}

/** Positions of some words in a text. */
function spansOf(words: string, text: string): (readonly [from: number, to: number])[] {
  const spans: [number, number][] = [];
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) spans.push([at, at + words.length]);
  return spans;
}

function fromRoot(link: string): string {
  return link.startsWith('../') ? link.slice(3) : `docs/${link}`;
}

function unescaped(cell: string): string {
  return cell.replaceAll(String.raw`\|`, '|');
}
