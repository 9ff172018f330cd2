import { open } from 'node:fs/promises';

/** Bytes read at each refresh: as many as the hash of a salt takes. */
const BYTES = 32;

/**
 * Reads 32 bytes of the kernel's random device, which no copy of this process's memory can hold: a second source beside
 * the process's own generator. Empty where it is not available: no such device, no permission to read it, no file
 * descriptor left. Salts then depend on the generator and the clocks; a missing second source must not prevent a read
 * of the ring.
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
