import type { RingStoreTarget } from '@sealring/conformance';
import { myRing } from './store.ts';

const target: RingStoreTarget = {
  name: 'my store',
  // Called several times for one name. Each store has its own connections.
  create: (name) => ({ store: myRing(name) }),
  // Add remove, plant, breakConnection and supports for further checks.
};
export default target;
