/**
 * Characters that are not seen, and change what is: controls, separators of lines, joiners of no width, halves of
 * surrogate pairs. A ring document or a token may have been written by anybody.
 */
const UNSEEN = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\p{Noncharacter_Code_Point}\u200b\u2060-\u206f\ufeff]/gu;

/** A text on one line, with such characters written out as JSON does. */
export function visibleLine(text: string): string {
  return text.replaceAll(UNSEEN, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
