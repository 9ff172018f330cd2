/** The instrumentation scope of all metrics and spans. */
export const SCOPE = '@sealring/otel';

/** The version of this package, which a test compares with its manifest. */
export const SCOPE_VERSION = '0.1.0';
