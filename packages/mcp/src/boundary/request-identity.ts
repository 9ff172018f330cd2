import { createHash, type Hash, hash } from 'node:crypto';
import { canonicalJson } from '@sealring/core';
import { ownMember } from '../shared/own-member.ts';
import { Refusal } from './refusal.ts';

/** The methods whose results may carry `requestState` (MCP 2026-07-28, multi-round-trip requests). */
export const CARRIER_METHODS = ['tools/call', 'prompts/get', 'resources/read'] as const;

/** One of {@link CARRIER_METHODS}. */
export type CarrierMethod = (typeof CARRIER_METHODS)[number];

/**
 * Maximum length of the canonical JSON of arguments that a state is bound to. A body of 4 MiB, the SDK's limit, stays
 * below it in any writing system.
 */
const MAX_ARGUMENTS_LENGTH = 16_777_216;

const DIGEST_BYTES = 16;

/** Whether the boundary acts on this method. */
export function isCarrierMethod(method: unknown): method is CarrierMethod {
  return CARRIER_METHODS.some((carrier) => carrier === method);
}

/** The parts of a request that a token is bound to. */
export interface RequestIdentity {
  readonly method: CarrierMethod;
  /** The name of the tool or prompt, or the URI. */
  readonly target: string;
  /** base64url of the first 16 bytes of SHA-256 over the canonical JSON of the arguments. */
  readonly digest: string;
}

/**
 * Reads the parameters that a token is bound to: `name` and `arguments`, or `uri`. This is an allow-list, so that a
 * future parameter does not change the digest (`_request_identity` in the MCP Python SDK, 2.3.0).
 *
 * The Python SDK applies `str()` to a name that is not a string. MCP's schemas allow no such name, so it is refused
 * here.
 *
 * @throws {Refusal} `arguments too large`.
 * @throws {TypeError} for a target that is not a string, or arguments that are not plain JSON.
 * @throws {RangeError} for arguments nested deeper than 512 levels.
 */
export function requestIdentity(method: CarrierMethod, params: unknown): RequestIdentity {
  const target = requestTarget(method, params);
  const args = method === 'resources/read' ? undefined : ownMember(params, 'arguments');
  return new PrintedIdentity(method, target, printed(isFalsyInPython(args) ? {} : args));
}

/** The arguments as they were at construction. They are hashed only when a state is bound to them. */
class PrintedIdentity implements RequestIdentity {
  readonly method: CarrierMethod;
  readonly target: string;
  readonly #printed: Printed;
  #digest: string | undefined;

  constructor(method: CarrierMethod, target: string, args: Printed) {
    this.method = method;
    this.target = target;
    this.#printed = args;
  }

  get digest(): string {
    this.#digest ??= digestOf(this.#printed);
    return this.#digest;
  }
}

/** Canonical JSON, as the hash of its first part and the text of the rest. */
interface Printed {
  readonly hashing: Hash | undefined;
  readonly rest: string;
}

function digestOf({ hashing, rest }: Printed): string {
  // The text is ASCII, so its UTF-8 has the same bytes. Getting the hash as a string is several times faster than as a
  // Buffer.
  const digest = hashing === undefined ? hash('sha256', rest, 'binary') : hashing.update(rest).digest('binary');
  return Buffer.from(digest.slice(0, DIGEST_BYTES), 'latin1').toString('base64url');
}

/** Hashes long arguments while they are encoded, so that the whole text is never in memory. */
function printed(args: unknown): Printed {
  let hashing: Hash | undefined;
  let room = MAX_ARGUMENTS_LENGTH;
  const take = (length: number): void => {
    room -= length;
    if (room < 0) throw new Refusal('arguments too large');
  };
  const write = (piece: Uint8Array): void => {
    take(piece.length);
    hashing = (hashing ?? createHash('sha256')).update(piece);
  };
  const rest = canonicalJson(args, { sortKeys: true, allowInfinity: true, allowBigInt: true, write });
  take(rest.length);
  return { hashing, rest };
}

/** The name of the tool or prompt, or the URI. @throws {TypeError} for a target that is not a string. */
export function requestTarget(method: CarrierMethod, params: unknown): string {
  const target = ownMember(params, method === 'resources/read' ? 'uri' : 'name') ?? '';
  if (typeof target !== 'string') throw new TypeError('the target of the request is not a string');
  return target;
}

function isFalsyInPython(value: unknown): boolean {
  return !value || (Array.isArray(value) && value.length === 0);
}
