/** As short as it may be where fifty processes share two processors; the outages leave room for a slow machine. */
export const fleetPolicy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 12,
  storeOutageSeconds: 30,
  propagationSeconds: 15,
  // Longer than any test: rotations are asked for, so that they can be counted.
  rotateEverySeconds: 600,
  tokenLifetimeSeconds: 60,
};
