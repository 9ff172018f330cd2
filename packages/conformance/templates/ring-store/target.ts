import type { RingStoreTarget } from '@sealring/conformance';
import { myRing } from './store.ts';

const target: RingStoreTarget = {
  name: 'my store',
  // Called several times for one name: each store on connections of its own.
  create: (name) => ({ store: myRing(name) }),
  // What the kit tests only if you add it: remove, plant, breakConnection and supports.
};
export default target;
