import { rejectedOptionIn } from '../foreign-error.ts';
import { rejectionOfOptions } from '../ring/open.ts';
import { policyOf } from '../ring/policy.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { error, type Finding, ok } from './finding.ts';

/** Checks the options and the policy as core does. */
export async function checkSettings(config: SealringConfig): Promise<readonly Finding[]> {
  const invalid = rejectionOfPolicy(config);
  if (invalid !== undefined) {
    return [
      error(
        'policy',
        invalid,
        'Change one of the named options on every server. docs/guides/key-lifecycle.md, "Policy", explains the rule.',
      ),
    ];
  }
  const rejection = await rejectionOfOptions(codecOptionsOf(config));
  if (rejection === undefined) return [ok('policy', 'the options and the policy are valid')];
  return [error('options', rejection, 'Correct the named option: servers would not start with these options.')];
}

function rejectionOfPolicy(config: SealringConfig): string | undefined {
  try {
    policyOf(config);
    return undefined;
  } catch (thrown) {
    const rejection = rejectedOptionIn(thrown);
    if (rejection === undefined) throw thrown;
    return rejection;
  }
}
