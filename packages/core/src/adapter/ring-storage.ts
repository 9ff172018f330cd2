/** Common code of ring stores: checks arguments, makes calls, and limits how much is read. */

export {
  MAX_DOCUMENT_BYTES,
  RING_STORE_ERROR_KINDS,
  type RingStoreCallOptions,
  type RingStoreError,
  type RingStoreErrorKind,
} from '../contracts/ring-store.ts';
export { storeCalls as calls } from './calls.ts';
export { decodeDocument, readBody } from './document-body.ts';
export { TOO_LARGE, tooLarge } from './failures.ts';
export { checkRead, checkWatcher, checkWrite } from './ring-store-arguments.ts';
