import { URL_SAFE } from '../bytes.ts';
import { refuses } from './damage.ts';
import { encodedParts, jsonParts, replaced } from './token-parts.ts';
import type { CodecChecks } from './trial.ts';

/** Letters of other alphabets that look like Latin ones. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  'AА aа cс eе oо OО pр xх -‐ 1１ _＿'.split(' ').map((pair) => [pair.charAt(0), pair.charAt(1)]),
);

/** ASCII letters, each with a Unicode letter that a change of case or case folding may turn into it. */
const FOLDED: readonly (readonly [string, string])[] = [
  ['s', '\u017f'],
  ['k', '\u212a'],
  ['i', '\u0131'],
  ['i', '\u0130'],
];

/** ASCII characters that a decoder may skip, and separators that it may confuse with each other. */
const OTHER_CHARACTERS: readonly string[] = Array.from('^[]\\`{}|"\'<>()@#&*;,!?%+/');
const SEPARATORS: readonly string[] = Array.from('-_.~:+/ ,|');

/** Prefixes of tokens in earlier formats. */
const PREFIXES: readonly string[] = ['', 'v0.', 'v1.', 'v2.', 'v1:', '1.', '0.', '$1$'];

export const CANONICAL_CHECKS: CodecChecks = {
  'CODEC-CANONICAL-LAST-CHAR': refuses(function* (token) {
    for (const parts of [[token], token.split('.')]) {
      for (const [i, part] of parts.entries()) {
        for (const last of URL_SAFE) {
          const variant = parts.with(i, part.slice(0, -1) + last).join('.');
          if (variant !== token) yield [variant, `with ${last} as the last character of part ${i}`];
        }
      }
    }
  }),
  'CODEC-CANONICAL-PADDING': refuses(function* (token) {
    for (const padding of ['=', '==', '===', '====', '%3D']) yield [token + padding, `with ${padding} after it`];
    yield [token.replaceAll('.', '=.'), 'with = before each dot'];
    yield [token.replace(/=+$/, ''), 'without its padding'];
  }),
  'CODEC-CANONICAL-SPACE': refuses(function* (token) {
    for (const { part, put } of jsonParts(token)) {
      const given = Object(JSON.parse(part));
      const forms = [
        ` ${part}`,
        `${part}\n`,
        JSON.stringify(given, undefined, 1),
        JSON.stringify(Object.fromEntries(Object.entries(given).toReversed())),
        part.replace('{', '{"x":1,'),
        part.replace(/}$/, ',"x":1}'),
        part.replace('{', `${part.slice(0, -1)},`),
      ];
      for (const form of forms) yield [put(form), 'with its JSON formatted differently'];
    }
    const middle = token.length >> 1;
    for (const space of [' ', '\n', '\r\n', '\t', '\v', '\f', '\u00a0', '\u2028', '\ufeff', '\u00ad', '\u200b', '\0']) {
      yield [space + token, `after ${JSON.stringify(space)}`];
      yield [token + space, `before ${JSON.stringify(space)}`];
      yield [token.slice(0, middle) + space + token.slice(middle), `around ${JSON.stringify(space)}`];
    }
  }),
  'CODEC-CANONICAL-ALPHABET': refuses(function* (token) {
    yield [token.replaceAll('-', '+').replaceAll('_', '/'), 'in the standard alphabet'];
    yield [token.replaceAll('+', '-').replaceAll('/', '_'), 'in the URL-safe alphabet'];
    yield [token.replace('-', '+'), 'with its first - as +'];
    yield [token.replace('_', '/'), 'with its first _ as /'];
    // Decoders skip many of these, and a proxy may have changed others.
    const [at, mark] = [token.length >> 1, /[-_.~:$]/g];
    for (const char of OTHER_CHARACTERS) yield [replaced(token, at, char + token[at]), `with ${char} in the middle`];
    for (const { index } of token.matchAll(mark)) {
      for (const char of SEPARATORS) yield [replaced(token, index, char), `with "${char}" as character ${index}`];
    }
    for (const char of SEPARATORS) yield [token.replaceAll(mark, char), `with "${char}" as every separator`];
    for (const { bytes } of encodedParts(token)) {
      for (const encoding of ['hex', 'base64', 'base64url', 'latin1'] as const) {
        for (const prefix of PREFIXES) {
          yield [prefix + bytes.toString(encoding), `in ${encoding} after ${JSON.stringify(prefix)}`];
        }
      }
    }
  }),
  'CODEC-CANONICAL-CASE': refuses(function* (token) {
    yield [token.toUpperCase(), 'in upper case'];
    yield [token.toLowerCase(), 'in lower case'];
    for (let at = 0; at < token.length; at++) {
      const char = token[at] ?? '';
      const other = char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase();
      if (other !== char) yield [replaced(token, at, other), `with character ${at} in the other letter case`];
    }
  }),
  'CODEC-CANONICAL-UNICODE': refuses(function* (token) {
    for (let at = 0; at < token.length; at++) {
      const char = token[at] ?? '';
      const alike = LOOK_ALIKES.get(char);
      if (alike !== undefined) yield [replaced(token, at, alike), `with a look-alike of character ${at}`];
      // A decoder that keeps only the low byte reads the same character.
      for (const [more, what] of [
        [0x80, '128 higher'],
        [0x100, '256 higher'],
        [0xfee0, 'full width'],
      ] as const) {
        yield [replaced(token, at, String.fromCharCode(char.charCodeAt(0) + more)), `with character ${at} ${what}`];
      }
    }
    // Regular expressions with the flags i and u match some of these as s and k. A change of case turns others into i.
    for (const [char, folded] of FOLDED) {
      for (const { index } of token.matchAll(new RegExp(char, 'gi'))) {
        yield [replaced(token, index, folded), `with ${folded} as character ${index}`];
      }
    }
    yield [`${token}\u0301`, 'with a combining accent'];
    yield [`\u200b${token}`, 'after a zero-width space'];
  }),
  'CODEC-CANONICAL-PERCENT': refuses(function* (token) {
    for (const at of [0, token.length >> 1, token.length - 1]) {
      const code = token.charCodeAt(at).toString(16);
      yield [replaced(token, at, `%${code}`), `with character ${at} percent-encoded`];
      yield [replaced(token, at, `%${code.toUpperCase()}`), `with character ${at} percent-encoded`];
      for (const escape of [`&#${token.charCodeAt(at)};`, `&#x${code};`, `\\u00${code}`, `\\x${code}`])
        yield [replaced(token, at, escape), `with ${escape} as character ${at}`];
    }
    yield [encodeURIComponent(token).replaceAll('.', '%2E'), 'percent-encoded'];
  }),
};
