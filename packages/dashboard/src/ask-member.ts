/** How long to wait for a member, and how much of its answer to read. */
export interface AskOptions {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Media type to ask for. Default any. */
  readonly accept?: string;
}

/** What a member answered, or why there is no answer. */
export type MemberAnswer =
  | {
      readonly status: number;
      /** Undefined where it has more than the bytes that were to be read. */
      readonly text: string | undefined;
    }
  | { readonly failure: 'unreachable' | 'timeout' };

/**
 * Asks one member by HTTP, within bounds of time and size.
 *
 * @param url - An `http:` or `https:` address. Redirects are not followed: whoever answers there must not send this
 * program elsewhere.
 * @returns the answer, of whatever status. Never rejects: a member that is away is something to be shown.
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

/** The text of an answer, or undefined when it has more than so many bytes: the rest is not read. */
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
