/** How long a policy may be without a server. Milliseconds. */
const GRACE_MS = 60_000;

let warned = false;
const waiting = new Map<object, NodeJS.Timeout>();

/** Starts the grace period within which `security` must be attached to a server; until then, it protects no state. */
export function expectAttachment(security: object): void {
  if (warned) return;
  try {
    waiting.set(security, setTimeout(warn, GRACE_MS).unref());
    if (waiting.size === 1) process.once('exit', warnAtExit);
  } catch {
    // Some runtimes have no timers outside a request. The warning is then not emitted.
  }
}

/** Records that `security` protects a server. */
export function noteAttached(security: object): void {
  clearTimeout(waiting.get(security));
  if (waiting.delete(security) && waiting.size === 0) process.off('exit', warnAtExit);
}

const WARNING = {
  text:
    'a RequestStateSecurity was created, but it protects no server. Pass it to createProtectedMcpServer, or to ' +
    'protectRequestState before you register anything. If you create a server for each request, you can ignore this ' +
    'warning until the first request',
  type: 'SealringWarning',
  code: 'SEALRING_UNATTACHED',
};

function warn(): void {
  warned = true;
  for (const timer of waiting.values()) clearTimeout(timer);
  waiting.clear();
  process.off('exit', warnAtExit);
  process.emitWarning(WARNING.text, WARNING);
}

/** Emits the warning synchronously: {@link process.emitWarning} would wait for a tick that no longer comes. */
function warnAtExit(): void {
  const { text, type: name, code } = WARNING;
  process.emit('warning', Object.assign(new Error(text), { name, code }));
}
