import { boundedText } from '../bounded-text.ts';
import { readSamples, type Sample } from './prometheus-text.ts';

const TIMEOUT_MS = 3_000;
const MAX_BYTES = 1_048_576;

/** What a member's exporter answered, or in words why it did not. */
export type Scraped = { readonly samples: readonly Sample[] } | { readonly failure: string };

/** Reads what one member exports. Never rejects; takes three seconds and one mebibyte at most. */
export async function scrape(url: string): Promise<Scraped> {
  try {
    const response = await fetch(url, {
      // Whoever answers there must not send this program to other addresses.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { accept: 'text/plain;version=0.0.4' },
    });
    if (!response.ok) {
      await response.body?.cancel();
      return { failure: `HTTP status ${response.status}` };
    }
    const page = await boundedText(response, MAX_BYTES);
    return page === undefined ? { failure: 'more than a mebibyte' } : { samples: readSamples(page) };
  } catch (error) {
    return { failure: error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : 'no answer' };
  }
}
