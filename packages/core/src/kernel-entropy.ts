import { open } from 'node:fs/promises';

/** Bytes read at each refresh: as many as a salt's hash takes in. */
const BYTES = 32;

/**
 * Reads 32 bytes of the kernel's random device, which no copy of this process's memory can hold: a second source beside
 * the process's own generator. Empty where there is no such device; salts then rest on the generator and the clocks.
 */
export async function readKernelEntropy(): Promise<Uint8Array> {
  if (process.platform === 'win32') return new Uint8Array(0);
  const bytes = new Uint8Array(BYTES);
  const device = await open('/dev/urandom', 'r');
  try {
    await device.read(bytes, 0, BYTES, null);
  } finally {
    await device.close();
  }
  return bytes;
}
