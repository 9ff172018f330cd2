import { types } from 'node:util';
import { keyWrapping, type Outcome, type ServiceFailure, vendorError } from '@sealring/core/adapter';
import type { VaultResponse, VaultToken } from './client.ts';
import { classifyAnswer, parseJson } from './error-table.ts';
import { isToken, type Settings } from './options.ts';

/** The longest answer that is read, in bytes. An answer of the transit engine is smaller than 1 KiB. */
const MAX_ANSWER_BYTES = 65_536;

const NO_TOKEN: ServiceFailure = Object.freeze({
  kind: 'unavailable',
  hint: 'the token function failed, or returned something other than 1 to 8192 visible ASCII characters',
});

/** A successful answer from Vault. */
export interface TransitAnswer {
  /** The answer's `data`, or undefined. */
  readonly data: unknown;
  /** The answer's `warnings`. */
  readonly warnings: unknown;
  /** The header `Date`. */
  readonly date: string | null;
}

/** Makes one POST request, and reads its answer. Rejects only with the client's own error. */
export async function request(
  { address, client, token }: Settings,
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<Outcome<TransitAnswer, ServiceFailure>> {
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    // Vault Agent and Vault Proxy may require this header, because a browser cannot be tricked into sending it.
    'X-Vault-Request': 'true',
  };
  if (token !== undefined) {
    const current = await currentToken(token);
    if (current === undefined) return { failure: NO_TOKEN };
    headers['X-Vault-Token'] = current;
  }
  const response = await client.fetch(`${address}/v1/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    redirect: 'manual',
    signal,
  });
  const text = await readText(response);
  if (text === undefined) return corruptAnswer('the answer is longer than 64 KiB');
  if (!isSuccess(response.status)) return { failure: classifyAnswer(response.status, text) };
  if (text === '') return corruptAnswer('the answer is empty: check that the mount is a transit engine');
  const answer = parseJson(text);
  // A gateway without a backend may send text that is not JSON.
  if (answer === undefined) return { failure: { kind: 'unavailable', status: 200, hint: 'the answer is not JSON' } };
  const date = response.headers.get('date');
  return {
    answer: { data: vendorError.property(answer, 'data'), warnings: vendorError.property(answer, 'warnings'), date },
  };
}

// An error that the function throws may contain the token, so it is dropped.
async function currentToken(token: VaultToken): Promise<string | undefined> {
  if (typeof token === 'string') return token;
  try {
    const given: unknown = await token();
    return isToken(given) ? given : undefined;
  } catch {
    return undefined;
  }
}

/** The text of a body; undefined for a body that is too long. Leaving the loop cancels the rest of the body. */
async function readText({ body }: VaultResponse): Promise<string | undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let length = 0;
  for await (const chunk of body ?? []) {
    if (!types.isUint8Array(chunk)) throw new TypeError('the client returned something other than bytes');
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) return undefined;
    text += decoder.decode(chunk, { stream: true });
    keyWrapping.overwrite(chunk);
  }
  return text + decoder.decode();
}

// Success includes 204, which a storage engine returns after it has stored the request.
function isSuccess(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 299;
}

function corruptAnswer(hint: string): { readonly failure: ServiceFailure } {
  return { failure: { kind: 'corrupt', hint } };
}
