import { readFileSync } from 'node:fs';

// A rule of textlint: the words of words.json are not used. It skips code and text in “…”, which is a quotation: a
// document, a title of a test or a message is checked in its own place.

const words = JSON.parse(readFileSync(new URL('./words.json', import.meta.url), 'utf8')).map(
  ({ pattern, except = [], ...word }) => ({
    ...word,
    pattern: new RegExp(pattern.replaceAll(' ', String.raw`\s+`), 'giu'),
    except: except.map((context) => new RegExp(context.replaceAll(' ', String.raw`\s+`), 'giu')),
  }),
);

/** A requirement of the conformance kit, whose sentence belongs to the kit. */
const REQUIREMENT = /^\| `(?:CODEC|WRAP|RING|USE)-/;
/** The heading of an error's kind or reason, which is a word of the API. */
const ERROR_HEADING = /^### (?:verify|[A-Z]\w+): /;

/** The text of a node with everything else blank, so that positions match the source. */
function proseOf(node, sourceOf) {
  const source = sourceOf(node);
  const prose = Array.from(source, (character) => (character === '\n' ? '\n' : ' ').repeat(character.length));
  const characters = prose.join('').split('');
  const visit = (part) => {
    const at = part.range[0] - node.range[0];
    if (part.type === 'Str') for (const [i, unit] of sourceOf(part).split('').entries()) characters[at + i] = unit;
    else if (part.type === 'Code') characters.fill('\uFFFC', at, part.range[1] - node.range[0]);
    for (const child of part.children ?? []) visit(child);
  };
  visit(node);
  return blanked(characters.join(''), /“[^”]*”/g);
}

function blanked(text, pattern) {
  return text.replaceAll(pattern, (found) => '\uFFFC'.repeat(found.length));
}

export default function unusedWords({ Syntax, RuleError, report, getSource, locator }) {
  const check = (node) => {
    if (node.parent?.type === Syntax.TableRow && REQUIREMENT.test(getSource(node.parent))) return;
    if (node.type === Syntax.Header && ERROR_HEADING.test(getSource(node))) return;
    const prose = proseOf(node, getSource);
    for (const { not, instead, pattern, except } of words) {
      const text = except.reduce(blanked, prose);
      for (const { 0: found, index } of text.matchAll(pattern)) {
        const message = `“${found.replaceAll(/\s+/g, ' ')}”: ${not} is not used here. Write: ${instead}`;
        report(node, new RuleError(message, { padding: locator.range([index, index + found.length]) }));
      }
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.Header]: check, [Syntax.TableCell]: check };
}
