/**
 * Characters that are not seen, and change what is: controls (C0, C1 and bidirectional), separators of lines, joiners
 * of no width, halves of surrogate pairs and code points that are not characters.
 */
const UNSEEN =
  /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\p{Noncharacter_Code_Point}\u200b\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** A text with such characters written out: `\u202e`. Line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (char) => (char === '\n' || char === '\t' ? char : escaped(char)));
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return text.replaceAll(UNSEEN, escaped);
}

/** As JSON writes it: by UTF-16 code units. */
function escaped(char: string): string {
  return char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
