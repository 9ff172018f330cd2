const warned = new Set<string>();

/** Emits a process warning, type `SealringWarning`, the first time in this process that its code comes. */
export function warnOnce(code: string, text: string): void {
  if (warned.has(code)) return;
  warned.add(code);
  process.emitWarning(text, { type: 'SealringWarning', code });
}
