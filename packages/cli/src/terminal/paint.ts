import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

/** Colours a text, or leaves it alone. */
export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

/** Colours for one stream, unless they are not wanted: on a terminal, or with FORCE_COLOR; never with NO_COLOR. */
export function paintFor(stream: { readonly isTTY?: boolean }, isWanted: boolean): Paint {
  const isShown = stream.isTTY === true || process.env['FORCE_COLOR'] !== undefined;
  // Reads FORCE_COLOR, NO_COLOR and TERM. styleText itself looks at them from Node 22.13 on only.
  const isColoured = isWanted && isShown && WriteStream.prototype.hasColors();
  return (format, text) => (isColoured ? styleText(format, text, { validateStream: false }) : text);
}
