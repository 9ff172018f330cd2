import type { SealringConfig } from '../settings/settings.ts';
import { keyWrappersOf } from '../settings/settings.ts';
import { error, type Finding, info, ok, warning } from './finding.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Checks the environment for variables that expose secrets. */
export function checkProcess(config: SealringConfig, environment: Environment): readonly Finding[] {
  const findings: Finding[] = [];
  const logging = environment['GOOGLE_SDK_NODE_LOGGING'];
  if (logging !== undefined && logging !== '') {
    const what = `GOOGLE_SDK_NODE_LOGGING is set ("${logging}"): Google's SDK prints requests and answers that contain data keys`;
    const remedy =
      'Unset GOOGLE_SDK_NODE_LOGGING on every server. If logs were kept while it was set, revoke the data keys.';
    const isUsed = keyWrappersOf(config).some(({ provider }) => provider === 'gcp-kms');
    findings.push(isUsed ? error('google-logging', what, remedy) : warning('google-logging', what, remedy));
  }
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    findings.push(
      error(
        'tls-unchecked',
        'NODE_TLS_REJECT_UNAUTHORIZED is 0: anyone between this machine and the KMS can read data keys',
        'Unset it, and add your certificate authority with NODE_EXTRA_CA_CERTS.',
      ),
    );
  }
  if (config.dangerouslyTrustStore === true) {
    findings.push(
      warning(
        'store-trusted',
        'dangerouslyTrustStore is set: anyone who can write to the ring store can create valid tokens',
        'Give the key wrapper a signing key, and remove the option.',
      ),
    );
  }
  if (findings.length === 0) findings.push(ok('process', 'no environment variable exposes secrets'));
  // The log level is set in the program: the doctor cannot check it.
  if (keyWrappersOf(config).some(({ provider }) => provider === 'aws-kms')) {
    findings.push(
      info(
        'botocore-logging',
        'Python servers were not checked: at level DEBUG, the loggers of boto3 (botocore) print answers from the KMS that contain data keys',
        'Keep botocore above DEBUG on Python servers, and do not call boto3.set_stream_logger there.',
      ),
    );
  }
  return findings;
}
