/** How long a policy may wait for its first server. Milliseconds. */
const PATIENCE_MS = 60_000;

let warned = false;
const waiting = new Map<object, NodeJS.Timeout>();

/** Begins to wait for a server that `security` is attached to: without one nothing is protected, and nothing shows it. */
export function expectAttachment(security: object): void {
  if (warned) return;
  try {
    waiting.set(security, setTimeout(warn, PATIENCE_MS).unref());
    if (waiting.size === 1) process.once('exit', warnAtExit);
  } catch {
    // Some runtimes have no timers outside of a request. It is a warning only.
  }
}

/** A server is protected by `security`. */
export function noteAttached(security: object): void {
  if (waiting.size === 0) return;
  clearTimeout(waiting.get(security));
  if (waiting.delete(security) && waiting.size === 0) process.off('exit', warnAtExit);
}

const WARNING = {
  text:
    'a RequestStateSecurity protects no server so far: hand it to createProtectedMcpServer, or to protectRequestState ' +
    'before anything is registered. A server that is made for each request is protected from the first one on',
  type: 'SealringWarning',
  code: 'SEALRING_UNATTACHED',
};

function warn(): void {
  if (warned) return;
  forgetAll();
  process.emitWarning(WARNING.text, WARNING);
}

/** As {@link process.emitWarning}, which would wait for a tick that does not come any more. */
function warnAtExit(): void {
  const { text, type: name, code } = WARNING;
  if (!warned) process.emit('warning', Object.assign(new Error(text), { name, code }));
}

function forgetAll(): void {
  warned = true;
  for (const timer of waiting.values()) clearTimeout(timer);
  waiting.clear();
  process.off('exit', warnAtExit);
}
