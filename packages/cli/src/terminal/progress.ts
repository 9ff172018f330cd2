/** What takes less is not told about, milliseconds. */
const SILENT_MS = 2_000;
const REPEAT_MS = 5_000;

/** Says on standard error what is being waited for, once it takes longer than two seconds. */
export async function withProgress<T>(what: string, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const tell = (): void => {
    const seconds = Math.round((performance.now() - began) / 1_000);
    process.stderr.write(`${what} … (${seconds} s)\n`);
  };
  let timer = setTimeout(() => {
    tell();
    timer = setInterval(tell, REPEAT_MS);
  }, SILENT_MS);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}
