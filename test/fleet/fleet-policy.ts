/** The times are as short as fifty processes on two processors allow; the outages leave room for a slow machine. */
export const fleetPolicy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 12,
  storeOutageSeconds: 30,
  propagationSeconds: 15,
  // This is longer than any test: rotations are requested, so that a test can count them.
  rotateEverySeconds: 600,
  tokenLifetimeSeconds: 60,
};
