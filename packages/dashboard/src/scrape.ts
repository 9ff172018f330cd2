import { askMember } from './ask-member.ts';
import { readSamples, type Sample } from './prometheus-text.ts';

const LIMITS = { timeoutMs: 3_000, maxBytes: 1_048_576, accept: 'text/plain;version=0.0.4' };

/** What a member's exporter answered, or in words why it did not. */
export type Scraped = { readonly samples: readonly Sample[] } | { readonly failure: string };

/** Reads what one member exports. Never rejects; takes three seconds and one mebibyte at most. */
export async function scrape(url: string): Promise<Scraped> {
  const answer = await askMember(url, LIMITS);
  if ('failure' in answer) return { failure: answer.failure === 'timeout' ? 'no answer in time' : 'no answer' };
  const { status, text } = answer;
  if (status < 200 || status > 299) return { failure: `HTTP status ${status}` };
  return text === undefined ? { failure: 'more than a mebibyte' } : { samples: readSamples(text) };
}
