import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';
import { Finding } from './requirement.ts';

/** The folder of the kit's own files, which findings do not name. */
const KIT = new URL('.', import.meta.url).href;
const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:\\)[^()]+?):(\d+):\d+\)?$/;

/**
 * An error that a program under test reports through the protocol. Findings show its text, because the program itself
 * sent it.
 */
export class ProgramError extends Error {
  override readonly name: string;

  constructor(text: string) {
    super(text);
    this.name = `the error ${text}`;
  }
}

/**
 * Describes an error by its class, its `kind`, and the line of the author's code that threw it. Omits its
 * text, which may contain a secret.
 */
/** @sealring/core marks its errors with their code, so that `instanceof` works across copies of the package. */
const BRAND = Symbol.for('@sealring/core/error');

/** Whether an error is an instance of the class of @sealring/core with this code, even of another copy. */
export function isInstance(error: Error, code: string): boolean {
  return Reflect.get(error, BRAND) === code;
}

export function describeThrown(error: unknown): string {
  if (error instanceof Finding) return error.message;
  if (error instanceof ProgramError) return error.name;
  if (!types.isNativeError(error)) return `${kindOf(error)} that is not an Error`;
  const [place, kind] = [placeOf(error), member(error, 'kind')];
  return `${nameOf(error)}${place === undefined ? '' : ` at ${place}`}${kind === undefined ? '' : `, ${kindText(kind)}`}`;
}

function kindText(kind: unknown): string {
  const isName = typeof kind === 'string' && /^[A-Za-z][A-Za-z-]{0,30}$/.test(kind);
  return isName ? `kind "${kind}"` : `${kindOf(kind)} as its kind`;
}

/** A member of an error; undefined if its getter throws. */
function member(error: Error, name: string): unknown {
  try {
    return Reflect.get(error, name);
  } catch {
    return undefined;
  }
}

/** The type of a value. The value itself may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'an array';
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof value['then'] === 'function';
}

/** The name of an error, if it looks like a class name. */
function nameOf(error: Error): string {
  const name = member(error, 'name');
  return typeof name === 'string' && /^[A-Za-z_$][\w$.]{0,63}$/.test(name) ? name : 'an error without a name';
}

/**
 * The place where an error was thrown, such as `my-wrapper.ts:12`: the innermost stack frame outside Node.js and the
 * kit. Files outside node_modules are preferred.
 */
function placeOf(error: Error): string | undefined {
  const [stack, message] = [member(error, 'stack'), member(error, 'message')];
  if (typeof stack !== 'string' || typeof message !== 'string') return undefined;
  // Lines of the message may look like frames.
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

const AROUND = 20;

/** Two texts and the position where they differ. Look-alike characters are escaped. */
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

/** Printable ASCII unchanged, everything else escaped as in JSON. */
function escaped(text: string): string {
  return Array.from(text.replaceAll(/["\\]/g, String.raw`\$&`), (char) =>
    /^[\u0020-\u007e]$/.test(char) ? char : unicode(char),
  ).join('');
}

/** A character as JSON escapes of its UTF-16 code units. */
export function unicode(char: string): string {
  return char
    .split('')
    .map((unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
