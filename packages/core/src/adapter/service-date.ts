import { markUnanswered } from './aws-errors.ts';

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

/** The answer that the next middleware of an AWS SDK command resolves to. */
interface MiddlewareResult {
  readonly response?: { readonly headers?: Record<string, unknown> };
}

/** The next middleware. */
type Next = (args: unknown) => Promise<MiddlewareResult>;

/**
 * Makes an AWS SDK command report the `Date` header of its answer to `onServiceDate`, even if the answer is a refusal.
 * Also marks an error that no answer preceded, for `vendorError.awsErrorFacts`. Changes the command, not the client, which
 * belongs to the caller; a command without a middleware stack is left unchanged.
 */
export function noteDateOf<Command extends object>(command: Command, onServiceDate: OnServiceDate): Command {
  if (!hasMiddleware(command)) return command;
  // Each time the command is sent, it has a new context.
  const answered = new Set<unknown>();
  const noteAnswer = (next: Next, context: unknown) => async (args: unknown) => {
    const result = await next(args);
    answered.add(context);
    noteDateHeader(result.response?.headers?.['date'], onServiceDate);
    return result;
  };
  const noteFailure = (next: Next, context: unknown) => async (args: unknown) => {
    try {
      return await next(args);
    } catch (error) {
      if (!answered.has(context)) markUnanswered(error);
      throw error;
    }
  };
  command.middlewareStack.add(noteAnswer, { step: 'deserialize', priority: 'low', name: 'sealringServiceDate' });
  command.middlewareStack.add(noteFailure, { step: 'initialize', priority: 'high', name: 'sealringNoAnswer' });
  return command;
}

function hasMiddleware(command: object): command is WithMiddleware {
  return typeof (command as Partial<WithMiddleware>).middlewareStack?.add === 'function';
}
