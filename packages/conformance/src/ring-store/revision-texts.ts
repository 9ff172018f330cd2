/** Texts that languages and services treat as empty, as a wildcard, or as a version. */
export const FOREIGN: readonly string[] = [
  '',
  "' OR 1=1 --",
  "' OR '1'='1",
  ...'absent undefined null none false true NaN AAAA 0 -1 00 1e9 9007199254740993 9223372036854775808'.split(' '),
  ...'* "*" % _ .* $ {} {"$ne":null} __proto__ constructor'.split(' '),
];

/**
 * Texts that no service accepts as a revision, because they are too long or contain characters that the service cannot
 * represent.
 */
export const IMPOSSIBLE: readonly string[] = [
  ...Array.from('é€😀\0\ud800\n\\'),
  '9'.repeat(40),
  '0'.repeat(1_000),
  'x'.repeat(2_000),
];

/** Texts that resemble a revision, but must be treated as different from it. */
export function othersLike(revision: string): readonly string[] {
  const isNumber = /^\d+$/.test(revision);
  const half = Math.ceil(revision.length / 2);
  const changed = [0, half - 1, revision.length - 1].map((place) => {
    const old = revision.charAt(place);
    const digit = old === '2' ? '3' : '2';
    // The text must also differ when decoded from base64, in which the last character may have unused bits.
    const other = isNumber || /[Q-Za-f]/.test(old) ? digit : 'b';
    return revision.slice(0, place) + other + revision.slice(place + 1);
  });
  const texts = [
    ...changed,
    revision.slice(1),
    revision.slice(0, -1),
    revision.slice(0, half),
    revision.slice(-half),
    Array.from(revision).toReversed().join(''),
    `${revision}1`,
    `1${revision}`,
    revision + revision,
    // Neighbouring numbers, and numbers that are equal after truncation to 32 or 64 bits.
    ...(isNumber ? [-1n, 1n, 2n ** 32n, 2n ** 64n] : []).map((far) => String(BigInt(revision) + far)),
  ];
  return texts.filter((one) => one !== revision);
}

/**
 * Texts that become equal to the revision after trimming, case folding, decoding, conversion, normalization, or
 * truncation at a NUL.
 */
export function spellingsOf(revision: string): readonly string[] {
  const around = [
    ...Array.from(' \n\r\t\0\u0001\u0085\u00a0\u00ad\u200b\ufeff\ud800"\'=,;/+%*0x'),
    '.0',
    'e0',
    '\0x',
    '\r\nx: y',
  ];
  const codes = Array.from({ length: revision.length }, (_, i) => revision.charCodeAt(i));
  const texts = [
    ...around.flatMap((one) => [revision + one, one + revision]),
    ...[' ', '-', '\0', '\u200b'].map((one) => revision.slice(0, 1) + one + revision.slice(1)),
    revision.toUpperCase(),
    revision.toLowerCase(),
    revision.replaceAll(/[^a-z0-9]/gi, ''),
    `"${revision}"`,
    `W/${revision}`,
    `W/"${revision}"`,
    `{${revision}}`,
    `x, ${revision}`,
    `${revision}, x`,
    // Characters with equal low bits, and their full-width forms.
    ...[0x80, 0x100, 0xfee0].map((by) => String.fromCharCode(...codes.map((code) => code + by))),
    codes.map((code) => `%${code.toString(16)}`).join(''),
    ...(/^\d+$/.test(revision) ? [`0x${BigInt(revision).toString(16)}`] : []),
  ];
  return texts.filter((one) => one !== revision);
}
