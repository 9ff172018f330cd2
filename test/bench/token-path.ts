import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { createKmsCodec, localKeyWrapper, memoryRing, type RequestStateCodec } from '@sealring/core';

/*
 * What a token costs, as a ratio: the codec of a ring against the shortest honest AES-256-GCM codec on node:crypto, on
 * the same payload, in one process, taking turns. Ratios carry over between machines; microseconds do not.
 */

/** Bytes of a typical claims envelope with a small state. */
const PAYLOAD_BYTES = 358;
const CALLS_PER_TURN = 500;
const TURNS = 501;
const WARM_UP_TURNS = 60;
/** A quarter of the turns may have been disturbed on either side. */
const SPREAD = [0.25, 0.75] as const;

const LIMITS = { seal: 0.8, unseal: 1.15 } as const;
const AEAD = 'aes-256-gcm';
const TAG = { authTagLength: 16 } as const;
const PREFIX = 'v1.';

const payload = randomBytes(PAYLOAD_BYTES);

/** A codec as one would write it by hand: one KeyObject, a random nonce, base64url, 16-byte tags. No key ids. */
function plainCodec(key: KeyObject): RequestStateCodec {
  const aad = Buffer.from(PREFIX, 'ascii');
  return {
    seal(plaintext) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv(AEAD, key, nonce, TAG);
      cipher.setAAD(aad);
      const ciphertext = cipher.update(plaintext);
      cipher.final();
      return PREFIX + Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url');
    },
    unseal(token) {
      const bytes = Buffer.from(token.slice(PREFIX.length), 'base64url');
      const decipher = createDecipheriv(AEAD, key, bytes.subarray(0, 12), TAG);
      decipher.setAAD(aad);
      decipher.setAuthTag(bytes.subarray(-16));
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    },
  };
}

/** The cipher alone, with a fixed nonce and nothing encoded: what no codec on node:crypto gets below. */
function cipherAlone(key: KeyObject): { seal(): void; unseal(): void } {
  const nonce = randomBytes(12);
  const aad = Buffer.from(PREFIX, 'ascii');
  const encrypt = (): { ciphertext: Buffer; tag: Buffer } => {
    const cipher = createCipheriv(AEAD, key, nonce, TAG);
    cipher.setAAD(aad);
    const ciphertext = cipher.update(payload);
    cipher.final();
    return { ciphertext, tag: cipher.getAuthTag() };
  };
  const { ciphertext, tag } = encrypt();
  return {
    seal: encrypt,
    unseal() {
      const decipher = createDecipheriv(AEAD, key, nonce, TAG);
      decipher.setAAD(aad);
      decipher.setAuthTag(tag);
      decipher.update(ciphertext);
      decipher.final();
    },
  };
}

interface Measurement {
  /** Microseconds per call. */
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Times the contenders in turns, so that a busy machine is busy for all of them. */
function measure(contenders: Readonly<Record<string, () => unknown>>, progress: (done: number) => void) {
  const samples = new Map(Object.keys(contenders).map((name): [string, number[]] => [name, []]));
  for (let turn = -WARM_UP_TURNS; turn < TURNS; turn++) {
    for (const [name, call] of Object.entries(contenders)) {
      const microseconds = timeOf(call);
      if (turn >= 0) samples.get(name)?.push(microseconds);
    }
    progress((turn + WARM_UP_TURNS + 1) / (TURNS + WARM_UP_TURNS));
  }
  return samples;
}

function timeOf(call: () => unknown): number {
  const started = process.hrtime.bigint();
  for (let i = 0; i < CALLS_PER_TURN; i++) call();
  return Number(process.hrtime.bigint() - started) / CALLS_PER_TURN / 1_000;
}

function summarise(values: readonly number[]): Measurement {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: at(0.5), low: at(SPREAD[0]), high: at(SPREAD[1]) };
}

/** The median of the ratios of two contenders' neighbouring turns: what slows both down cancels out. */
function ratioOf(ours: readonly number[], plain: readonly number[]): Measurement {
  return summarise(ours.map((value, turn) => value / (plain[turn] ?? Number.NaN)));
}

async function run(json: boolean): Promise<number> {
  await using codec = await createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
  });
  const key = createSecretKey(randomBytes(32));
  const plain = plainCodec(key);
  const bare = cipherAlone(key);
  const tokens = { ring: codec.seal(payload), plain: plain.seal(payload) };
  for (const [name, opened] of [
    ['ring', codec.unseal(tokens.ring)],
    ['plain', plain.unseal(tokens.plain)],
  ] as const) {
    if (!payload.equals(opened)) throw new Error(`the ${name} codec does not open its own token`);
  }

  const samples = measure(
    {
      'seal bare cipher': () => bare.seal(),
      'seal plain codec': () => plain.seal(payload),
      'seal ring codec': () => codec.seal(payload),
      'unseal bare cipher': () => bare.unseal(),
      'unseal plain codec': () => plain.unseal(tokens.plain),
      'unseal ring codec': () => codec.unseal(tokens.ring),
    },
    json ? () => undefined : showProgress,
  );

  const verdicts = (['seal', 'unseal'] as const).map((operation) => {
    const of = (contender: string): readonly number[] => samples.get(`${operation} ${contender}`) ?? [];
    const ratio = ratioOf(of('ring codec'), of('plain codec'));
    return {
      operation,
      bareCipher: summarise(of('bare cipher')),
      plainCodec: summarise(of('plain codec')),
      ringCodec: summarise(of('ring codec')),
      ratio,
      limit: LIMITS[operation],
      // The number as it is printed decides.
      met: Number(ratio.median.toFixed(2)) <= LIMITS[operation],
    };
  });
  const machine = `${cpus()[0]?.model ?? 'unknown processor'} × ${cpus().length}, ${process.platform} ${process.arch}`;
  const facts = { machine, node: process.version, payloadBytes: PAYLOAD_BYTES, turns: TURNS, verdicts };
  process.stdout.write(json ? `${JSON.stringify(facts, undefined, 2)}\n` : describe(facts));
  return verdicts.every(({ met }) => met) ? 0 : 1;
}

function describe(facts: {
  readonly machine: string;
  readonly node: string;
  readonly verdicts: readonly (Record<'bareCipher' | 'plainCodec' | 'ringCodec' | 'ratio', Measurement> & {
    readonly operation: string;
    readonly limit: number;
    readonly met: boolean;
  })[];
}): string {
  const cell = ({ median, low, high }: Measurement): string =>
    `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`.padEnd(21);
  const lines = [
    '',
    `${facts.machine}, Node ${facts.node}`,
    `${PAYLOAD_BYTES}-byte payload, µs per call: median (middle half) of ${TURNS} turns of ${CALLS_PER_TURN} calls`,
    '',
    `         ${['bare cipher', 'plain codec', 'ring codec', 'ring / plain'].map((name) => name.padEnd(21)).join('')}`,
  ];
  for (const { operation, bareCipher, plainCodec: plain, ringCodec, ratio } of facts.verdicts) {
    lines.push(`${operation.padEnd(9)}${[bareCipher, plain, ringCodec, ratio].map(cell).join('')}`.trimEnd());
  }
  lines.push('');
  for (const { operation, ratio, limit, met } of facts.verdicts) {
    lines.push(`${operation} ratio ${ratio.median.toFixed(2)} (must be ≤ ${limit})${met ? '' : ': not met'}`);
  }
  return `${lines.join('\n')}\n`;
}

let shown = -1;
function showProgress(done: number): void {
  const tenth = Math.floor(done * 10);
  if (tenth === shown) return;
  shown = tenth;
  process.stderr.write(tenth === 0 ? 'Measuring' : tenth === 10 ? ' done\n' : ` ${tenth * 10} %`);
}

const help = `Usage: npm run bench [-- --json]

Times seal and unseal of a ring's codec against a plain AES-256-GCM codec on node:crypto, and against the bare
cipher. Exit code 1 when a ratio is over its limit.`;

try {
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) process.stdout.write(`${help}\n`);
  else process.exitCode = await run(values.json === true);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
