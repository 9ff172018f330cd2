import { signalOf } from '../adapter/options.ts';
import { type Clock, type RandomSource, systemClock, systemRandom } from '../base/clock.ts';
import {
  finiteNumber,
  label,
  oneOf,
  optionRangeError,
  optionTypeError,
  refuseUnknownOptions,
  show,
} from '../base/options.ts';
import type { KeyWrapper } from '../contracts/key-wrapper.ts';
import type { RingStore } from '../contracts/ring-store.ts';
import { MAX_TOKEN_LENGTH } from '../formats/token.ts';
import { policyNames, type ResolvedPolicy, type RingPolicy, resolvePolicy } from '../ring/policy.ts';
import type { TokenFormatName } from '../tokens/token-formats.ts';

const OWNER = 'createKmsCodec';
const FORMATS: readonly TokenFormatName[] = ['sealring', 'python'];
/** The upper bound of `maxTokenLength`, which cannot be unlimited. */
const MOST_TOKEN_LENGTH = 16 * 1024 * 1024;
/** Shortest native token: an empty payload. */
const LEAST_TOKEN_LENGTH = 102;
const MAX_KEY_WRAPPERS = 8;

/** Options of {@link createKmsCodec}. */
export interface KmsCodecOptions {
  /** Wraps data keys. Up to 8 key wrappers: each of them wraps every data key, and any of them can unwrap it. */
  readonly keyWrapper: KeyWrapper | readonly KeyWrapper[];
  /** The ring store. */
  readonly ring: RingStore;
  /**
   * The name of the ring, bound into every wrap and every derived key: 1 to 64 characters of `[A-Za-z0-9._-]`. Default
   * `default`.
   */
  readonly ringName?: string;
  /** A reader never creates a ring, never writes to the store, and does not seal. Default `member`. */
  readonly role?: 'member' | 'reader';
  /**
   * When a starting member creates a ring. `if-absent`, the default: once the ring has been absent for
   * `createAfterSeconds`; `now`: as soon as the ring is absent; `never`: not at all.
   */
  readonly create?: 'if-absent' | 'now' | 'never';
  /** Keys created before this date count as revoked. Set it when servers start after a leak. Default none. */
  readonly acceptKeysCreatedAfter?: Date;
  /** The format of new tokens. Default `sealring`. */
  readonly format?: 'sealring' | 'python';
  /** The formats that may be unsealed. Default `[format]`. */
  readonly accept?: readonly ('sealring' | 'python')[];
  /** The times of the ring. Set the same values on every member. */
  readonly policy?: Partial<RingPolicy>;
  /** How many key wrappers must wrap a key before it is published; missing wraps are added later. Default all. */
  readonly wrapQuorum?: number;
  /** Whether closing the codec closes its key wrappers. Set it if no other codec uses them. Default false. */
  readonly closeKeyWrappers?: boolean;
  /**
   * Accept wraps that do not authenticate their origin: anyone who can write to the store can then mint tokens. Default
   * false.
   */
  readonly dangerouslyTrustStore?: boolean;
  /**
   * Mix a keyed hash of the payload into each nonce, in both formats, for platforms that clone running machines;
   * the encrypted tokens of mcp.d always do this. Default false.
   */
  readonly hedge?: boolean;
  /** The longest token that is sealed or unsealed, in characters: 102 to 16 777 216. Default 262 144. */
  readonly maxTokenLength?: number;
  /** The clocks and timers to use. Default: the system's. */
  readonly clock?: Clock;
  /**
   * Replaces the system's random number generator and the kernel's random device, whose bytes are otherwise mixed into
   * salts.
   */
  readonly random?: RandomSource;
  /** Cancels the start. */
  readonly signal?: AbortSignal;
}

/** The options, checked, copied and completed with the defaults. */
export interface CheckedOptions {
  readonly keyWrappers: readonly KeyWrapper[];
  readonly ring: RingStore;
  readonly ringName: string;
  readonly role: 'member' | 'reader';
  readonly create: 'if-absent' | 'now' | 'never';
  readonly acceptKeysCreatedAfter: Date | undefined;
  readonly format: TokenFormatName;
  readonly accept: readonly TokenFormatName[];
  readonly policy: ResolvedPolicy;
  readonly wrapQuorum: number;
  readonly closeKeyWrappers: boolean;
  readonly dangerouslyTrustStore: boolean;
  readonly hedge: boolean;
  readonly maxTokenLength: number;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal: AbortSignal | undefined;
}

const KNOWN: readonly (keyof KmsCodecOptions)[] = [
  'keyWrapper',
  'ring',
  'ringName',
  'role',
  'create',
  'acceptKeysCreatedAfter',
  'format',
  'accept',
  'policy',
  'wrapQuorum',
  'closeKeyWrappers',
  'dangerouslyTrustStore',
  'hedge',
  'maxTokenLength',
  'clock',
  'random',
  'signal',
];

function refuseMisplaced(given: unknown): void {
  const names = policyNames();
  const misplaced = Object.keys(Object(given)).find((name) => names.includes(name));
  if (misplaced !== undefined) throw optionTypeError(`${OWNER}: "${misplaced}" belongs in policy: { ${misplaced} }`);
}

/** @throws {TypeError | RangeError} that names the option and the value. */
export function checkOptions(given: unknown): CheckedOptions {
  refuseMisplaced(given);
  refuseUnknownOptions(OWNER, given, KNOWN);
  const options = given as Partial<Record<keyof KmsCodecOptions, unknown>>;
  const ring = checkStore(options.ring);
  const role = oneOf(OWNER, 'role', defaulted(options.role, 'member'), ['member', 'reader']);
  const create = oneOf(OWNER, 'create', defaulted(options.create, 'if-absent'), ['if-absent', 'now', 'never']);
  const format = oneOf(OWNER, 'format', defaulted(options.format, 'sealring'), FORMATS);
  const dangerouslyTrustStore = flag('dangerouslyTrustStore', options.dangerouslyTrustStore);
  const keyWrappers = checkWrappers(options.keyWrapper, role, dangerouslyTrustStore);
  return Object.freeze({
    keyWrappers,
    ring,
    ringName: label(OWNER, 'ringName', defaulted(options.ringName, 'default')),
    role,
    create,
    acceptKeysCreatedAfter: checkDate(options.acceptKeysCreatedAfter),
    format,
    accept: checkAccept(defaulted(options.accept, [format])),
    policy: resolvePolicy(options.policy, { storeKind: ring.kind, createNow: create === 'now' }),
    wrapQuorum: checkQuorum(defaulted(options.wrapQuorum, keyWrappers.length), keyWrappers.length),
    closeKeyWrappers: flag('closeKeyWrappers', options.closeKeyWrappers),
    dangerouslyTrustStore,
    hedge: flag('hedge', options.hedge),
    maxTokenLength: Math.floor(
      finiteNumber(
        OWNER,
        'maxTokenLength',
        defaulted(options.maxTokenLength, MAX_TOKEN_LENGTH),
        LEAST_TOKEN_LENGTH,
        MOST_TOKEN_LENGTH,
      ),
    ),
    clock: checkClock(defaulted(options.clock, systemClock)),
    random: checkRandom(defaulted(options.random, systemRandom)),
    signal: signalOf(OWNER, options.signal),
  });
}

function checkWrappers(given: unknown, role: string, trustStore: boolean): readonly KeyWrapper[] {
  const wrappers: readonly unknown[] = Array.isArray(given) ? [...given] : [given];
  if (wrappers.length === 0 || wrappers.length > MAX_KEY_WRAPPERS) {
    throw optionRangeError(
      `${OWNER}: keyWrapper must be 1 to ${MAX_KEY_WRAPPERS} key wrappers, got ${wrappers.length}`,
    );
  }
  return Object.freeze(wrappers.map((wrapper) => checkWrapper(wrapper, role, trustStore)));
}

function checkWrapper(given: unknown, role: string, trustStore: boolean): KeyWrapper {
  const wrapper = given as Partial<KeyWrapper> | null | undefined;
  if (
    typeof wrapper?.wrap !== 'function' ||
    typeof wrapper.unwrap !== 'function' ||
    typeof wrapper.supports?.context !== 'boolean' ||
    typeof wrapper.supports.authenticated !== 'boolean'
  ) {
    throw optionTypeError(
      `${OWNER}: keyWrapper must have wrap, unwrap and supports, as localKeyWrapper({ masterKey }) has, got ${show(given)}`,
    );
  }
  if (typeof wrapper.provider !== 'string' || !/^[a-z0-9-]{1,64}$/.test(wrapper.provider)) {
    throw optionTypeError(
      `${OWNER}: keyWrapper.provider must be 1 to 64 characters of [a-z0-9-], got ${show(wrapper.provider)}`,
    );
  }
  const signs = typeof wrapper.verify === 'function' && (role === 'reader' || typeof wrapper.sign === 'function');
  if (!wrapper.supports.authenticated && !signs && !trustStore) {
    throw optionTypeError(
      `${OWNER}: an unwrap by keyWrapper ${wrapper.provider} does not authenticate the origin of a wrap, so it must have sign ` +
        'and verify; if you set dangerouslyTrustStore instead, anyone who can write to the store can mint tokens',
    );
  }
  return wrapper as KeyWrapper;
}

function checkStore(given: unknown): RingStore {
  const store = given as Partial<RingStore> | null | undefined;
  if (typeof store?.read !== 'function' || typeof store.write !== 'function' || typeof store.kind !== 'string') {
    throw optionTypeError(`${OWNER}: ring must have kind, read and write, as fileRing(path) has, got ${show(given)}`);
  }
  return store as RingStore;
}

function checkAccept(given: unknown): readonly TokenFormatName[] {
  if (!Array.isArray(given)) throw optionTypeError(`${OWNER}: accept must be an array, got ${show(given)}`);
  if (given.length === 0) throw optionRangeError(`${OWNER}: accept must name at least one format, got an empty array`);
  return Object.freeze(given.map((name: unknown) => oneOf(OWNER, 'accept', name, FORMATS)));
}

function checkQuorum(given: unknown, wrappers: number): number {
  const quorum = finiteNumber(OWNER, 'wrapQuorum', given, 1, wrappers);
  if (!Number.isInteger(quorum)) throw optionRangeError(`${OWNER}: wrapQuorum must be a whole number, got ${quorum}`);
  return quorum;
}

function checkDate(given: unknown): Date | undefined {
  if (given === undefined) return undefined;
  if (!(given instanceof Date)) {
    throw optionTypeError(`${OWNER}: acceptKeysCreatedAfter must be a Date, got ${show(given)}`);
  }
  if (Number.isNaN(given.getTime())) throw optionRangeError(`${OWNER}: acceptKeysCreatedAfter is an invalid Date`);
  return new Date(given);
}

function checkClock(given: unknown): Clock {
  const clock = given as Partial<Clock> | null | undefined;
  if (typeof clock?.wallMs !== 'function' || typeof clock.monotonicNs !== 'function') {
    throw optionTypeError(`${OWNER}: clock must have wallMs and monotonicNs, got ${show(given)}`);
  }
  return clock as Clock;
}

function checkRandom(given: unknown): RandomSource {
  if (typeof given !== 'function') throw optionTypeError(`${OWNER}: random must be a function, got ${show(given)}`);
  return given as RandomSource;
}

function flag(name: string, given: unknown): boolean {
  if (given !== undefined && typeof given !== 'boolean') {
    throw optionTypeError(`${OWNER}: ${name} must be a boolean, got ${show(given)}`);
  }
  return given === true;
}

/** The default replaces only undefined: null is refused like any other invalid value. */
function defaulted(given: unknown, fallback: unknown): unknown {
  return given === undefined ? fallback : given;
}
