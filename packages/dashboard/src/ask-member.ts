/** Limits of a request to a member. */
export interface AskOptions {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Media type to accept. Default: any. */
  readonly accept?: string;
}

/** The answer of a member, or the reason why there is none. */
export type MemberAnswer =
  | {
      readonly status: number;
      /** Undefined if the answer is longer than `maxBytes`. */
      readonly text: string | undefined;
    }
  | { readonly failure: 'unreachable' | 'timeout' };

/**
 * Sends a request to an address of one member, with limits on time and size.
 *
 * @param url - An `http:` or `https:` address. Redirects are not followed.
 * @returns the answer, with any status. Never rejects: a failure is part of the result.
 */
export async function askMember(url: string, { timeoutMs, maxBytes, accept }: AskOptions): Promise<MemberAnswer> {
  try {
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
      ...(accept !== undefined && { headers: { accept } }),
    });
    return { status: response.status, text: await boundedText(response, maxBytes) };
  } catch (error) {
    return { failure: error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : 'unreachable' };
  }
}

/** The text of an answer, or undefined if it is longer than `maxBytes`; the rest is not read. */
async function boundedText({ body }: Response, maxBytes: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > maxBytes) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
