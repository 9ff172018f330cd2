import { callTool } from '../support/call-tool.ts';

/** A server's answer: a question with a token, the tool's text, or a refusal. */
export interface RawAnswer {
  readonly requestState?: string;
  readonly text?: string;
  readonly refusal?: string;
}

/** One `tools/call` of `refund`, first round or second, over a real socket. */
export async function rawCall(url: string, user: string, requestState?: string): Promise<RawAnswer> {
  const { error, result } = await callTool(url, { name: 'refund', user, requestState });
  if (error !== undefined) return { refusal: `${error.code} ${error.message}` };
  if (result?.requestState !== undefined) return { requestState: result.requestState };
  return { text: result?.content?.[0]?.text ?? JSON.stringify(result) };
}
