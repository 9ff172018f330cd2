import { createHash } from 'node:crypto';
import type { RedisClient } from './client.ts';
import { codeOf } from './error-table.ts';

/** A Lua script. */
export interface Script {
  readonly source: string;
  /**
   * `_RO` for a script that only reads: a user without permission to write can run it, and the server enforces that it
   * does not write.
   */
  readonly suffix: '_RO' | '';
}

/** The maximum length of a revision. A longer one was not written by this store. */
const MAX_REVISION_LENGTH = 64;

/**
 * Sets `revision` to the revision of the key's value, whose type is `kind`, or to `foreign` if no ring store wrote the
 * value.
 */
const REVISION = `
local revision = 'foreign'
if kind == 'hash' then
  local length = redis.call('HSTRLEN', KEYS[1], 'revision')
  if length > 0 and length <= ${MAX_REVISION_LENGTH} then revision = redis.call('HMGET', KEYS[1], 'revision')[1] end
end
`;

/**
 * Reads the ring. KEYS: the ring. ARGV: the maximum number of bytes of a document.
 *
 * Only a primary answers: a replica may be behind, and a key that it does not have yet is not absent. Sizes are
 * checked before values are read, so that a value over the limit is never sent. The server's time is included if the
 * user has the permission.
 */
export const READ: Script = {
  suffix: '_RO',
  source: `
if not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then return {'replica'} end
local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.pcall('TIME')[1] or ''
if kind == 'none' then return {'absent', time} end
${REVISION}
if revision == 'foreign' then return {'foreign', time, revision} end
if redis.call('HSTRLEN', KEYS[1], 'document') > tonumber(ARGV[1]) then return {'too-large', time, revision} end
local document = redis.call('HMGET', KEYS[1], 'document')[1]
if not document then return {'foreign', time, revision} end
return {'held', time, revision, document}
`,
};

/**
 * Writes the ring. KEYS: the ring. ARGV: 'absent', or '=' and the expected revision; the document; its revision.
 *
 * A script runs alone, from the comparison to the write. A value that is not a ring is deleted first, if the caller has
 * read that value. The push fails if the user may not publish; the write is done by then, and must not be reported as
 * failed.
 */
export const WRITE: Script = {
  suffix: '',
  source: `
local kind = redis.call('TYPE', KEYS[1]).ok
${REVISION}
if ARGV[1] ~= (kind == 'none' and 'absent' or '=' .. revision) then return {'conflict'} end
if kind ~= 'none' and revision == 'foreign' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'document', ARGV[2], 'revision', ARGV[3])
redis.pcall('PUBLISH', KEYS[1], ARGV[3])
return {'written'}
`,
};

/** Runs a script by its hash, or by its text if the server no longer has it. */
export async function runScript(
  client: RedisClient,
  { source, suffix }: Script,
  key: string,
  values: readonly string[],
  signal: AbortSignal,
): Promise<unknown> {
  const sha1 = createHash('sha1').update(source).digest('hex');
  const options = { abortSignal: signal, typeMapping: { 36: Buffer } } as const;
  try {
    return await client.sendCommand([`EVALSHA${suffix}`, sha1, '1', key, ...values], options);
  } catch (error) {
    // Nothing was done: the server had no script to run.
    if (codeOf(error) !== 'NOSCRIPT') throw error;
    return client.sendCommand([`EVAL${suffix}`, source, '1', key, ...values], options);
  }
}
