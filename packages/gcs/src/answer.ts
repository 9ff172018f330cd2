import { type Outcome, readBody, type StoreFailure, statusOf } from '@sealring/core/adapter';

/** An HTTP answer whose body has not been read. */
export interface Answer {
  /** 100 to 599; 0 for anything that is not an answer. */
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  /** Every byte of the body, or `too-large`: see `readBody`. */
  readonly readBody: () => Promise<Outcome<Buffer, StoreFailure>>;
}

/** The result of the SDK's transport: a response of `fetch`, with its body as `data`. */
export function answerOf(response: unknown): Answer {
  const headers = field(response, 'headers');
  const body = field(response, 'data');
  const header = (name: string): string | undefined => {
    const value: unknown = isHeaders(headers) ? headers.get(name) : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  return {
    status: statusOf(field(response, 'status')) ?? 0,
    header,
    readBody: () => readBody(body, declaredBytes(header)),
  };
}

/** A property of the answer to a call, inherited getters included: a response of `fetch` has only those. */
export function field(answer: unknown, name: string): unknown {
  return typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined;
}

// The length of a compressed body is not that of its bytes.
function declaredBytes(header: Answer['header']): number | undefined {
  const length = header('content-encoding') === undefined ? header('content-length') : undefined;
  return length === undefined ? undefined : Number(length);
}

function isHeaders(value: unknown): value is { get(name: string): unknown } {
  return typeof field(value, 'get') === 'function';
}
