import { randomBytes } from 'node:crypto';
import { setImmediate as macrotask, setTimeout as pause } from 'node:timers/promises';
import {
  AlgorithmSuiteIdentifier,
  buildClient,
  CommitmentPolicy,
  getLocalCryptographicMaterialsCache,
  KeyringNode,
  NodeCachingMaterialsManager,
  RawAesKeyringNode,
  RawAesWrappingSuiteIdentifier,
} from '@aws-crypto/client-node';
import { createKmsCodec, type KmsCodec } from '@sealring/core';
import { callsPerMemberDay } from '../simulator/formula.ts';
import { simulate } from '../simulator/simulate.ts';
import { World, type WorldOptions } from '../simulator/world.ts';
import { type Calls, type CountedServices, countedServices, kmsCalls, storeCalls } from './fleet-costs-counting.ts';
import { payloadOf } from './payload.ts';
import type { Verdict } from './verdict.ts';

const PAYLOAD_BYTES = 358;
const DAY_SECONDS = 86_400;
/** Number of tokens between two turns of the event loop. Calls that tokens cause would start and end in these turns. */
const TOKENS_AT_A_TIME = 10_000;
/** The time that a KMS in the same region takes. */
const CALL_MS = 5;
/** The default of refreshEvery, minus its jitter: the ring is read at most this often, whatever the tokens cause. */
const SHORTEST_REFRESH_SECONDS = 240;
/** A member makes a KMS check at most this often. */
const SHORTEST_PROOF_SECONDS = 720;
const WITHIN = 0.1;

interface PerDay {
  readonly kms: number;
  readonly store: number;
}

export interface FleetCostsReport {
  readonly perMemberDay: {
    readonly formula: PerDay;
    readonly simulated: PerDay;
    readonly members: number;
    readonly days: number;
    readonly lossShare: number;
  };
  /** The cost of a million tokens at a member that seals, and unseals, this many tokens per second. */
  readonly perMillionTokens: readonly {
    readonly tokensPerSecond: number;
    readonly formula: PerDay;
    readonly simulated: PerDay;
  }[];
  /** Real time, and tokens that were sealed and unsealed; calls after the start. */
  readonly measured: { readonly tokens: number; readonly seconds: number; readonly calls: Calls };
  /** Calls until the first token is sealed. */
  readonly coldStart: {
    readonly founder: Calls;
    /** Members that join a ring of this many keys. */
    readonly joiners: readonly { readonly keys: number; readonly calls: Calls }[];
  };
  readonly herd: {
    readonly concurrent: number;
    /** First seals of one process, whose codec is not ready yet. */
    readonly oneProcess: Calls;
    /** The same with the AWS Encryption SDK: data keys requested from its keyring. */
    readonly encryptionSdk: number;
    /** Processes of a fleet that start at once, on one store without a ring. */
    readonly members: { readonly calls: Calls; readonly keysInRing: number; readonly openNext: boolean };
  };
}

export interface FleetCostsOptions {
  /** Number of tokens; each is sealed and unsealed. Default 10^6. */
  readonly tokens?: number;
  /** Number of first seals, and of starts, at once. Default 200. */
  readonly herd?: number;
  /** Options of the simulated fleet. Default 10 members over 2 days; the first hour is left out. */
  readonly members?: number;
  readonly days?: number;
  /** Tokens per second at one member. Default 1, 100, 1 000. */
  readonly tokensPerSecond?: readonly number[];
}

/** Counts calls. Nothing depends on time, except that tokens are sealed in real time. */
export async function measureFleetCosts(
  { tokens = 1e6, herd = 200, members = 10, days = 2, tokensPerSecond = [1, 100, 1_000] }: FleetCostsOptions = {},
  progress: (done: number) => void = () => undefined,
): Promise<FleetCostsReport> {
  const coldStart = { founder: await foundersCalls(), joiners: await joinersCalls([1, 8]) };
  const atOnce = {
    concurrent: herd,
    oneProcess: await herdOfSeals(herd),
    encryptionSdk: await herdOfEncryptionSdk(herd),
    members: await herdOfMembers(herd),
  };
  progress(0.1);
  const perMemberDay = await callsADay({
    seed: 1,
    members,
    days,
    loss: 0.02,
    clockSkewSeconds: 600,
    quantumMs: 20,
  });
  progress(0.3);
  const measured = await callsOfTokens(tokens, (done) => progress(0.3 + 0.7 * done));
  const forAMillion = ({ kms, store }: PerDay, rate: number): PerDay => {
    const millions = (rate * DAY_SECONDS) / 1e6;
    return { kms: kms / millions, store: store / millions };
  };
  return {
    perMemberDay,
    perMillionTokens: tokensPerSecond.map((rate) => ({
      tokensPerSecond: rate,
      formula: forAMillion(perMemberDay.formula, rate),
      simulated: forAMillion(perMemberDay.simulated, rate),
    })),
    measured,
    coldStart,
    herd: atOnce,
  };
}

export function judgeFleetCosts({ perMemberDay, measured, coldStart, herd }: FleetCostsReport): readonly Verdict[] {
  const { formula, simulated } = perMemberDay;
  const { tokens, seconds, calls } = measured;
  const timesIn = (interval: number): number => Math.floor(seconds / interval);
  const atMost = (law: string, limit: number, value: number): Verdict => ({
    law,
    limit,
    measured: value,
    met: value <= limit,
  });
  return [
    // In a longer run KMS checks are due; the clock causes them, not the tokens.
    atMost(`KMS calls for ${tokens} tokens after the start`, timesIn(SHORTEST_PROOF_SECONDS), kmsCalls(calls)),
    atMost(`store calls for ${tokens} tokens after the start`, timesIn(SHORTEST_REFRESH_SECONDS), storeCalls(calls)),
    atMost(
      'KMS calls a day: relative difference between simulator and formula',
      WITHIN,
      apart(simulated.kms, formula.kms),
    ),
    atMost(
      'store calls a day: relative difference between simulator and formula',
      WITHIN,
      apart(simulated.store, formula.store),
    ),
    // This includes the unwrap that checks the new key.
    atMost('KMS calls of the member that creates a ring, until its first seal', 2, kmsCalls(coldStart.founder)),
    ...coldStart.joiners.map(({ keys, calls: joiner }) =>
      atMost(
        `KMS calls of a member that joins a ring of ${keys} ${keys === 1 ? 'key' : 'keys'}`,
        keys,
        kmsCalls(joiner),
      ),
    ),
    atMost(`data keys made for ${herd.concurrent} first seals at once`, 1, dataKeys(herd.oneProcess)),
    {
      law: 'data keys that the AWS Encryption SDK requests for as many first seals, at least',
      limit: herd.concurrent,
      measured: herd.encryptionSdk,
      met: herd.encryptionSdk >= herd.concurrent,
    },
    atMost(`data keys made for ${herd.concurrent} members that start at once`, 1, dataKeys(herd.members.calls)),
    atMost(`keys in the ring after ${herd.concurrent} members start at once`, 1, herd.members.keysInRing),
    {
      law: `each of ${herd.concurrent} members that start at once unseals the next member's token (1: yes, 0: no), at least`,
      limit: 1,
      measured: herd.members.openNext ? 1 : 0,
      met: herd.members.openNext,
    },
  ];
}

const startCodec = ({ keyWrapper, ring }: CountedServices): Promise<KmsCodec> => createKmsCodec({ keyWrapper, ring });
const apart = (a: number, b: number): number => Math.abs(a / b - 1);
const dataKeys = ({ generate, wrap }: Calls): number => generate + wrap;

/** Calls a day by the formula and by the simulator, without the first hour, when members start. */
async function callsADay(options: WorldOptions): Promise<FleetCostsReport['perMemberDay']> {
  const { hours } = await simulate(options, ['quiet']);
  const counted = hours.slice(1);
  const memberDays = (counted.length / 24) * options.members;
  const perDay = (calls: readonly number[]): number => calls.reduce((sum, some) => sum + some, 0) / memberDays;
  return {
    formula: callsPerMemberDay(new World(options).policy, options.loss),
    simulated: {
      kms: perDay(counted.map(({ kmsCalls: calls }) => calls)),
      store: perDay(counted.map(({ storeCalls: calls }) => calls)),
    },
    members: options.members,
    days: options.days,
    lossShare: options.loss,
  };
}

async function callsOfTokens(tokens: number, progress: (done: number) => void): Promise<FleetCostsReport['measured']> {
  const services = countedServices();
  const { payload } = payloadOf(PAYLOAD_BYTES);
  await using codec = await startCodec(services);
  codec.unseal(codec.seal(payload));
  const before = { ...services.calls };
  const started = performance.now();
  for (let done = 0; done < tokens; ) {
    const until = Math.min(tokens, done + TOKENS_AT_A_TIME);
    for (; done < until; done++) {
      if (codec.unseal(codec.seal(payload)).length !== PAYLOAD_BYTES) throw new Error('a token lost its payload');
    }
    await macrotask();
    progress(done / tokens);
  }
  return { tokens, seconds: (performance.now() - started) / 1_000, calls: since(before, services) };
}

function since(before: Calls, { calls }: CountedServices): Calls {
  return {
    generate: calls.generate - before.generate,
    wrap: calls.wrap - before.wrap,
    unwrap: calls.unwrap - before.unwrap,
    read: calls.read - before.read,
    write: calls.write - before.write,
  };
}

async function foundersCalls(): Promise<Calls> {
  const services = countedServices();
  await using codec = await startCodec(services);
  codec.seal(payloadOf(PAYLOAD_BYTES).payload);
  return { ...services.calls };
}

async function joinersCalls(rings: readonly number[]): Promise<FleetCostsReport['coldStart']['joiners']> {
  const joiners = [];
  for (const keys of rings) {
    const services = countedServices();
    await using founder = await startCodec(services);
    for (let i = 1; i < keys; i++) await founder.rotate();
    const before = { ...services.calls };
    await using joiner = await startCodec(services);
    joiner.seal(payloadOf(PAYLOAD_BYTES).payload);
    joiners.push({ keys: joiner.health().keys.length, calls: since(before, services) });
  }
  return joiners;
}

/** Requests that arrive at a process before its codec is ready. */
async function herdOfSeals(concurrent: number): Promise<Calls> {
  const services = countedServices(CALL_MS);
  const { payload } = payloadOf(PAYLOAD_BYTES);
  // This is what a server does: it starts the codec once, and every request awaits that start.
  let codec: Promise<KmsCodec> | undefined;
  const request = async (): Promise<string> => (await (codec ??= startCodec(services))).seal(payload);
  const sealed = await Promise.all(Array.from({ length: concurrent }, request));
  if (new Set(sealed).size !== concurrent) throw new Error('two tokens are alike');
  await (await codec)?.close();
  return { ...services.calls };
}

/** Creates data keys as a KMS does: each takes a slow call. */
class CountedKeyring extends KeyringNode {
  readonly #keyring = new RawAesKeyringNode({
    keyName: 'key',
    keyNamespace: 'bench',
    unencryptedMasterKey: randomBytes(32),
    wrappingSuite: RawAesWrappingSuiteIdentifier.AES256_GCM_IV12_TAG16_NO_PADDING,
  });
  calls = 0;

  async _onEncrypt(material: Parameters<RawAesKeyringNode['onEncrypt']>[0]) {
    this.calls += 1;
    await pause(CALL_MS);
    return this.#keyring.onEncrypt(material);
  }

  async _onDecrypt(
    material: Parameters<RawAesKeyringNode['onDecrypt']>[0],
    keys: Parameters<RawAesKeyringNode['onDecrypt']>[1],
  ) {
    this.calls += 1;
    await pause(CALL_MS);
    return this.#keyring.onDecrypt(material, keys);
  }
}

/** The same requests, with one caching materials manager for all of them. */
async function herdOfEncryptionSdk(concurrent: number): Promise<number> {
  const { encrypt } = buildClient(CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT);
  const keyring = new CountedKeyring();
  const manager = new NodeCachingMaterialsManager({
    backingMaterials: keyring,
    cache: getLocalCryptographicMaterialsCache(100),
    maxAge: 3_600_000,
    maxMessagesEncrypted: 2 ** 32,
  });
  const { payload } = payloadOf(PAYLOAD_BYTES);
  const suiteId = AlgorithmSuiteIdentifier.ALG_AES256_GCM_IV12_TAG16_HKDF_SHA512_COMMIT_KEY;
  const request = () =>
    encrypt(manager, payload, {
      encryptionContext: { ring: 'refund-desk' },
      suiteId,
      plaintextLength: payload.length,
    });
  await Promise.all(Array.from({ length: concurrent }, request));
  const atOnce = keyring.calls;
  // It does cache: later requests cause no call.
  await request();
  if (keyring.calls !== atOnce) throw new Error('the AWS Encryption SDK does not cache as it is set up');
  return atOnce;
}

/** Separate codecs, as processes have them, that find their common store empty. */
async function herdOfMembers(count: number): Promise<FleetCostsReport['herd']['members']> {
  const services = countedServices(CALL_MS);
  const codecs = await Promise.all(Array.from({ length: count }, () => startCodec(services)));
  const calls = { ...services.calls };
  const { payload } = payloadOf(PAYLOAD_BYTES);
  const tokens = codecs.map((codec) => codec.seal(payload));
  const openNext = codecs.every((codec, i) => payload.equals(codec.unseal(tokens[(i + 1) % count] ?? '')));
  const keysInRing = codecs[0]?.health().keys.length ?? 0;
  await Promise.all(codecs.map((codec) => codec.close()));
  return { calls, keysInRing, openNext };
}
