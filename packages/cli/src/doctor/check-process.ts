import type { SealringConfig } from '../settings/settings.ts';
import { keyWrappersOf } from '../settings/settings.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What the environment of the servers may do to secrets; that of this process stands for it. */
export function checkProcess(config: SealringConfig, environment: Environment): readonly Finding[] {
  const findings: Finding[] = [];
  const logging = environment['GOOGLE_SDK_NODE_LOGGING'];
  if (logging !== undefined && logging !== '') {
    const what = `GOOGLE_SDK_NODE_LOGGING is set ("${logging}"): Google's SDK prints requests and answers, data keys included`;
    const remedy = 'Unset GOOGLE_SDK_NODE_LOGGING wherever servers run, and rotate if logs were kept while it was set.';
    const isUsed = keyWrappersOf(config).some(({ provider }) => provider === 'gcp-kms');
    findings.push(isUsed ? error('google-logging', what, remedy) : warning('google-logging', what, remedy));
  }
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    findings.push(
      error(
        'tls-unchecked',
        'NODE_TLS_REJECT_UNAUTHORIZED is 0: whoever is on the way to the KMS can read data keys',
        'Unset it, and give Node the right certificates with NODE_EXTRA_CA_CERTS.',
      ),
    );
  }
  if (config.dangerouslyTrustStore === true) {
    findings.push(
      warning(
        'store-trusted',
        'dangerouslyTrustStore is set: whoever can write the ring store can mint tokens',
        'Give the key wrapper a signing key, and take the option away.',
      ),
    );
  }
  if (findings.length === 0) findings.push(ok('process', 'nothing in the environment prints or uncovers secrets'));
  // A level is set in the program, not in the environment: it can only be told.
  if (keyWrappersOf(config).some(({ provider }) => provider === 'aws-kms')) {
    findings.push(
      info(
        'botocore-logging',
        "Python servers: boto3's loggers (botocore) print whole answers of the KMS at level DEBUG, data keys included",
        'Keep botocore above DEBUG on Python servers, and call no boto3.set_stream_logger there.',
      ),
    );
  }
  return findings;
}
