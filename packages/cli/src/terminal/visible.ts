/**
 * Invisible characters: controls, line separators, zero-width joiners, bidirectional controls, unpaired surrogates. Anyone
 * can put them into a ring document or a token.
 */
const INVISIBLE = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\p{Noncharacter_Code_Point}\u200b\u2060-\u206f\ufeff]/gu;

/** The text on one line, with invisible characters escaped as in JSON. */
export function visibleLine(text: string): string {
  return text.replaceAll(INVISIBLE, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
