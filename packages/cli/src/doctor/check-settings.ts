import { createKmsCodec } from '@sealring/core';
import { lineOf } from '../foreign-error.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { error, type Finding, ok } from './finding.ts';

/** Options and policy, by core's own laws: it checks them before it does anything, and then finds that it need not start. */
export async function checkSettings(config: SealringConfig): Promise<readonly Finding[]> {
  const notNow = new Error('not now');
  try {
    await createKmsCodec({ ...codecOptionsOf(config), signal: AbortSignal.abort(notNow) });
  } catch (thrown) {
    if (thrown === notNow) return [ok('policy', 'the options and the times of the policy fit each other')];
    return [refusalOf(thrown)];
  }
  throw new Error('core started although it was told not to');
}

function refusalOf(thrown: unknown): Finding {
  const text = lineOf(thrown);
  if (text.startsWith('policy: ')) {
    return error(
      'policy',
      text,
      'Change one of the named options, on every server: docs/guides/key-lifecycle.md, "Policy", says why the law is there.',
    );
  }
  return error('options', text, 'Mend the named option of the configuration: servers would not start with it.');
}
