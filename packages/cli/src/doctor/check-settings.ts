import { refusedOptionIn } from '../foreign-error.ts';
import { refusalOfOptions } from '../ring/open.ts';
import { policyOf } from '../ring/policy.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { error, type Finding, ok } from './finding.ts';

/** Options and policy, by core's own laws. */
export async function checkSettings(config: SealringConfig): Promise<readonly Finding[]> {
  const law = refusalOfPolicy(config);
  if (law !== undefined) {
    return [
      error(
        'policy',
        law,
        'Change one of the named options, on every server: docs/guides/key-lifecycle.md, "Policy", says why the law is there.',
      ),
    ];
  }
  const refusal = await refusalOfOptions(codecOptionsOf(config));
  if (refusal === undefined) return [ok('policy', 'the options and the times of the policy fit each other')];
  return [error('options', refusal, 'Mend the named option of the configuration: servers would not start with it.')];
}

function refusalOfPolicy(config: SealringConfig): string | undefined {
  try {
    policyOf(config);
    return undefined;
  } catch (thrown) {
    const refusal = refusedOptionIn(thrown);
    if (refusal === undefined) throw thrown;
    return refusal;
  }
}
