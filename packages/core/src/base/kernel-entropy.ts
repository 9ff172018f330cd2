import { open } from 'node:fs/promises';

/** How many bytes are read at each refresh: as many as are hashed into a salt. */
const BYTES = 32;

/**
 * Reads 32 bytes from the kernel's random device, as a second source in addition to the process's own generator: no
 * copy of this process's memory can contain them. The result is empty if the device does not exist or cannot be read,
 * or if no file descriptor is left. Salts then depend on the generator and the clocks; a missing second source must not
 * prevent a read of the ring.
 */
export async function readKernelEntropy(): Promise<Uint8Array> {
  const [read] = await Promise.allSettled([readDevice()]);
  return read.status === 'fulfilled' ? read.value : new Uint8Array(0);
}

async function readDevice(): Promise<Uint8Array> {
  const bytes = new Uint8Array(BYTES);
  const device = await open('/dev/urandom', 'r');
  try {
    await device.read(bytes, 0, BYTES, null);
  } finally {
    await device.close();
  }
  return bytes;
}
