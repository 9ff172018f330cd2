import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

/** Adds colours to the text, or returns it unchanged. */
export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

/** Colours for a stream: on a terminal or with FORCE_COLOR, unless NO_COLOR is set or `isWanted` is false. */
export function paintFor(stream: { readonly isTTY?: boolean }, isWanted: boolean): Paint {
  const { FORCE_COLOR: forced, NO_COLOR: refused = '' } = process.env;
  const isShown = (stream.isTTY === true || forced !== undefined) && refused === '';
  // hasColors reads FORCE_COLOR and TERM; styleText itself does so only from Node 22.13. Both prefer FORCE_COLOR to NO_COLOR.
  const isColoured = isWanted && isShown && WriteStream.prototype.hasColors();
  return (format, text) => (isColoured ? styleText(format, text, { validateStream: false }) : text);
}
