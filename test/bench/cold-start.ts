import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type SeenRequest, startHttpStub } from '../support/http-stub.ts';
import { type Estimate, estimate } from './statistics.ts';

const KEY_ID = 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';

/** Both programs print how long they took, from their first line and from the start of their process. */
const PRINT = `const end = performance.now();
process.stdout.write(JSON.stringify({ program: end - began, process: end }));
process.exit();`;

/** The reference: what any program that calls KMS loads. */
const SDK_PROGRAM = `const began = performance.now();
const { DecryptCommand, KMSClient } = await import('@aws-sdk/client-kms');
const client = new KMSClient({ region: 'eu-west-1', maxAttempts: 1 });
await client.send(new DecryptCommand({
  KeyId: process.env.KEY_ID,
  CiphertextBlob: Buffer.alloc(32, 1),
  EncryptionContext: { 'sealring:ring': 'cold-start' },
}));
${PRINT}`;

const TOKEN_PROGRAM = `const began = performance.now();
const [{ createAwsKmsCodec }, { fileRing }] = await Promise.all([import('@sealring/aws-kms'), import('@sealring/core')]);
const codec = await createAwsKmsCodec({
  keyId: process.env.KEY_ID,
  ringName: 'cold-start',
  ring: fileRing(process.env.RING),
  ...(process.env.CREATE === 'now' && { create: 'now' }),
});
codec.seal(Buffer.from('{"step":1}'));
${PRINT}`;

/** Milliseconds of one process. */
type Taken = Readonly<Record<'program' | 'process', number>>;

/** The time to the first token as a multiple of the time that the AWS SDK takes for one call. */
export interface ColdStart {
  /** The time from the first import. */
  readonly program: Estimate;
  /** The time from the start of the process; Node's own start is in both. */
  readonly process: Estimate;
}

/**
 * Starts processes alternately: one calls Decrypt with the AWS SDK alone, the next joins a ring in a file, which takes
 * one Decrypt, and seals a token. The two processes of a round are compared with each other, because a busy machine
 * slows both.
 *
 * @param folder - A project with `@sealring/aws-kms` and `@sealring/core`, packed and installed.
 * @throws {Error} if a process makes any other call than one Decrypt.
 */
export async function measureColdStart(
  folder: string,
  { rounds, onRound }: { readonly rounds: number; readonly onRound: (round: number) => void },
): Promise<ColdStart> {
  const ring = join(folder, 'cold-start.ring');
  const kms = await startHttpStub((request, response) => {
    response.setHeader('content-type', 'application/x-amz-json-1.1').end(JSON.stringify(answerOf(request)));
  });
  const run = async (program: string, more: Readonly<Record<string, string>> = {}): Promise<Taken> => {
    const env = {
      PATH: process.env['PATH'],
      AWS_ACCESS_KEY_ID: 'cold',
      AWS_SECRET_ACCESS_KEY: 'start',
      AWS_ENDPOINT_URL_KMS: kms.endpoint,
      KEY_ID,
      RING: ring,
      ...more,
    };
    const options = { cwd: folder, env, timeout: 60_000 };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], options);
    return JSON.parse(stdout);
  };
  const withOneDecrypt = async (program: string): Promise<Taken> => {
    const before = kms.requests.length;
    const taken = await run(program);
    const calls = kms.requests.slice(before).map(operationOf);
    if (calls.join() !== 'Decrypt') throw new Error(`expected one Decrypt, got ${calls.join(', ') || 'no call'}`);
    return taken;
  };
  try {
    await run(TOKEN_PROGRAM, { CREATE: 'now' });
    const ratios: Taken[] = [];
    for (let round = 0; round < rounds; round++) {
      onRound(round);
      const sdk = await withOneDecrypt(SDK_PROGRAM);
      const token = await withOneDecrypt(TOKEN_PROGRAM);
      ratios.push({ program: token.program / sdk.program, process: token.process / sdk.process });
    }
    return {
      program: estimate(ratios.map((ratio) => ratio.program)),
      process: estimate(ratios.map((ratio) => ratio.process)),
    };
  } finally {
    await kms.close();
    rmSync(ring, { force: true });
  }
}

/** The cold starts as a Markdown table. */
export function coldStartTable({ program, process: whole }: ColdStart): string {
  const row = (from: string, { median, low, high }: Estimate): string =>
    `| ${from} | ${median.toFixed(2)} | ${low.toFixed(2)} to ${high.toFixed(2)} |`;
  return [
    '| the first token, in calls of the AWS SDK | median | 95 % bounds |',
    '|---|---:|---:|',
    row('from the first import', program),
    row('from the start of the process', whole),
  ].join('\n');
}

const operationOf = ({ headers }: SeenRequest): string => String(headers['x-amz-target']).split('.')[1] ?? '';

/** The answer has the form of KMS; the wrapped key is the data key itself. */
function answerOf(request: SeenRequest): object {
  const { CiphertextBlob }: { readonly CiphertextBlob?: string } = JSON.parse(request.body.toString());
  if (operationOf(request) === 'Decrypt') return { KeyId: KEY_ID, Plaintext: CiphertextBlob };
  const dataKey = randomBytes(32).toString('base64');
  return { KeyId: KEY_ID, Plaintext: dataKey, CiphertextBlob: dataKey };
}
