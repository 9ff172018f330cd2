import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';

/** The kit's own files, and those of its dependencies: no place to send the author of a target to. */
const KIT = new URL('.', import.meta.url).href;
const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:\\)[^()]+?):(\d+):\d+\)?$/;

/** What was thrown: its class, and the line of the author's own file. Its text is left out, since it may hold a secret. */
export function describeThrown(error: unknown): string {
  if (!types.isNativeError(error)) return kindOf(error);
  const place = placeOf(error);
  return `${nameOf(error)}${place === undefined ? '' : ` at ${place}`}`;
}

/** A value by its type only: it may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

export function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function';
}

/** The name of an error, where it reads like one. */
export function nameOf(error: Error): string {
  const { name } = error;
  return typeof name === 'string' && /^[A-Za-z_$][\w$.]{0,63}$/.test(name) ? name : 'an error without a name';
}

/** `my-wrapper.ts:12`: the innermost frame of a stack that is neither Node’s nor the kit’s, the author’s own first. */
function placeOf(error: Error): string | undefined {
  const { stack, message } = error;
  if (typeof stack !== 'string') return undefined;
  // A message may have lines that look like frames.
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n');
  const places = frames.flatMap((frame) => {
    const [, file = '', line = ''] = FRAME.exec(frame.trim()) ?? [];
    return file === '' || file.startsWith(KIT) || file.startsWith(pathOf(KIT)) ? [] : [[pathOf(file), line] as const];
  });
  const own = places.find(([file]) => !/[/\\]node_modules[/\\]/.test(file)) ?? places[0];
  return own && `${shortPath(own[0])}:${own[1]}`;
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file.replace(/\?.*$/, '')) : file;
}

function shortPath(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
}
