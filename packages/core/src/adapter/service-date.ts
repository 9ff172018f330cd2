/** Receives the date of a service's answer; never throws an error into the call that it observes. */
export type OnServiceDate = ((date: Date) => void) | undefined;

/** Passes the `Date` header of an answer (RFC 9110, section 6.6.1) to `onServiceDate`, if the header is a date. */
export function noteDateHeader(header: unknown, onServiceDate: OnServiceDate): void {
  if (typeof header === 'string') noteServiceTime(Date.parse(header), onServiceDate);
}

/** Passes the time of a service, in milliseconds since the epoch, to `onServiceDate`, if it is a number. */
export function noteServiceTime(ms: unknown, onServiceDate: OnServiceDate): void {
  if (Number.isFinite(ms)) onServiceDate?.(new Date(ms as number));
}

/** The part of an AWS SDK command (any 3.x version) that gives access to the answer. */
interface WithMiddleware {
  readonly middlewareStack: {
    add(
      middleware: unknown,
      options: { readonly step: string; readonly priority: string; readonly name: string },
    ): void;
  };
}

/**
 * Makes an AWS SDK command report the `Date` header of its answer to `onServiceDate`, even if the answer is a refusal.
 * Changes the command, not the client, which belongs to the caller; a command without a middleware stack is left
 * unchanged.
 */
export function noteDateOf<Command extends object>(command: Command, onServiceDate: OnServiceDate): Command {
  if (!hasMiddleware(command)) return command;
  const middleware =
    (next: (args: unknown) => Promise<{ readonly response?: { readonly headers?: Record<string, unknown> } }>) =>
    async (args: unknown): Promise<unknown> => {
      const result = await next(args);
      noteDateHeader(result.response?.headers?.['date'], onServiceDate);
      return result;
    };
  command.middlewareStack.add(middleware, { step: 'deserialize', priority: 'low', name: 'sealringServiceDate' });
  return command;
}

function hasMiddleware(command: object): command is WithMiddleware {
  return typeof (command as Partial<WithMiddleware>).middlewareStack?.add === 'function';
}
