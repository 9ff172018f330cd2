import type { KeyWrapperTarget } from '@sealring/conformance';
import { myKeyWrapper } from './key-wrapper.ts';

const target: KeyWrapperTarget = {
  name: 'my key wrapper',
  create: () => ({ keyWrapper: myKeyWrapper('key-a') }),
  // Another KMS key of the same service.
  createOtherKey: () => ({ keyWrapper: myKeyWrapper('key-b') }),
  // For a service on the network, delete `remote` and add `createUnreachable`, which creates a key wrapper on
  // key-a with the address of a closed port. With `control`, the kit also disables, denies and rotates key-a.
  supports: { remote: false },
};
export default target;
