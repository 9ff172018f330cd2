const warned = new Set<string>();

/** Emits a process warning of type `SealringWarning`, once per process for each code. */
export function warnOnce(code: string, text: string): void {
  if (warned.has(code)) return;
  warned.add(code);
  process.emitWarning(text, { type: 'SealringWarning', code });
}
