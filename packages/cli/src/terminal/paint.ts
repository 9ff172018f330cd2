import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

/** Adds colours to the text, or returns it unchanged. */
export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

/** Colours for a stream: on a terminal or with FORCE_COLOR, unless NO_COLOR is set or `isWanted` is false. */
export function paintFor(stream: { readonly isTTY?: boolean }, isWanted: boolean): Paint {
  const isShown = stream.isTTY === true || process.env['FORCE_COLOR'] !== undefined;
  // hasColors reads FORCE_COLOR, NO_COLOR and TERM; styleText itself does so only from Node 22.13.
  const isColoured = isWanted && isShown && WriteStream.prototype.hasColors();
  return (format, text) => (isColoured ? styleText(format, text, { validateStream: false }) : text);
}
