/** Characters of a text that are shown on either side of a difference. */
const AROUND = 20;

/** Two texts that differ, and where: what looks alike is escaped. */
export function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const cut = (text: string): string => {
    const [from, to] = [Math.max(0, at - AROUND), at + AROUND];
    return `${from > 0 ? '…' : ''}${escaped(text.slice(from, to))}${to < text.length ? '…' : ''}`;
  };
  const unit = (text: string): string =>
    at < text.length ? `U+${text.charCodeAt(at).toString(16).padStart(4, '0').toUpperCase()}` : 'its end';
  return `"${cut(one)}" and "${cut(other)}" first differ at character ${at + 1}: ${unit(one)} and ${unit(other)}`;
}

/** Printable ASCII as it is, everything else as JSON escapes it. */
function escaped(text: string): string {
  return Array.from(text.replaceAll(/["\\]/g, String.raw`\$&`), (char) =>
    /^[\u0020-\u007e]$/.test(char) ? char : unicode(char),
  ).join('');
}

function unicode(char: string): string {
  return char
    .split('')
    .map((unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
