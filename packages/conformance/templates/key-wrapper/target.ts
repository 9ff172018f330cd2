import type { KeyWrapperTarget } from '@sealring/conformance';
import { myKeyWrapper } from './key-wrapper.ts';

const target: KeyWrapperTarget = {
  name: 'my key wrapper',
  create: () => ({ keyWrapper: myKeyWrapper('key-a') }),
  // Another KMS key of the same service.
  createOtherKey: () => ({ keyWrapper: myKeyWrapper('key-b') }),
  // Where the service is asked over a network: delete `remote`, and add `createUnreachable`, which makes a key wrapper on
  // key-a whose address is that of a closed port. With `control`, the kit disables, denies and rotates key-a, too.
  supports: { remote: false },
};
export default target;
