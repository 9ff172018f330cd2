import { askMember } from './ask-member.ts';
import { readSamples, type Sample } from './prometheus-text.ts';

const LIMITS = { timeoutMs: 3_000, maxBytes: 1_048_576, accept: 'text/plain;version=0.0.4' };

/** The samples of a member, or a text that describes the failure. */
export type Scraped = { readonly samples: readonly Sample[] } | { readonly failure: string };

/** Reads the metrics of one member, within limits of three seconds and one mebibyte. Never rejects. */
export async function scrape(url: string): Promise<Scraped> {
  const answer = await askMember(url, LIMITS);
  if ('failure' in answer) return { failure: answer.failure === 'timeout' ? 'timed out' : 'no answer' };
  const { status, text } = answer;
  if (status > 299) return { failure: `HTTP status ${status}` };
  return text === undefined ? { failure: 'longer than 1 MiB' } : { samples: readSamples(text) };
}
