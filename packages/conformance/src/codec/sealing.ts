/* Runs in a process of its own: reports the first tokens of a module's codec, and whether it unseals a given token. */
import { loadTarget } from '../target-module.ts';
import { type FirstTokens, firstTokens } from './first-tokens.ts';
import { readCodecTarget } from './target.ts';
import { CodecTrial } from './trial.ts';

/** What the process reports. */
export type SealedInProcess = { readonly tokens: FirstTokens; readonly opened: boolean } | { readonly failed: string };

const [module = '', seed = '', token = ''] = process.argv.slice(2);

async function seal(): Promise<SealedInProcess> {
  const subject = readCodecTarget('runCodecConformance', (await loadTarget(module)) as never);
  const trial = new CodecTrial(subject, Number(seed));
  const codec = await trial.create();
  const tokens = firstTokens(trial, codec);
  return { tokens, opened: 'answer' in trial.outcome(codec, token) };
}

function tell(sealed: SealedInProcess): void {
  process.send?.(sealed, () => process.exit());
}

seal().then(tell, (error: unknown) => tell({ failed: error instanceof Error ? error.name : 'something' }));
