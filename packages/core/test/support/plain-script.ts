import { randomBytes } from 'node:crypto';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { fileRing } from '../../src/stores/file-ring.ts';

/** A user's first script: only the codec could keep its process alive. */
const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
  ring: fileRing(process.argv[2] ?? ''),
  create: 'now',
});
await codec.refresh();
await codec.rotate();
await codec.revokeAllBefore(new Date(Date.now() + 1_000));
process.stdout.write(new TextDecoder().decode(codec.unseal(codec.seal(new TextEncoder().encode('done')))));
// The codec is not closed: an idle codec must not keep a process alive either.
