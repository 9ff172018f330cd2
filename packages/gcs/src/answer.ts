import { type Outcome, ringStorage, type StoreFailure, vendorError } from '@sealring/core/adapter';

/** An HTTP answer whose body has not been read. */
export interface Answer {
  /** 100 to 599; undefined for anything that is not an answer. */
  readonly status: number | undefined;
  readonly header: (name: string) => string | undefined;
  /** Every byte of the body, or `too-large`: see `readBody`. */
  readonly readBody: () => Promise<Outcome<Buffer, StoreFailure>>;
}

/** The result of the SDK's transport: a response of `fetch`, with its body as `data`. */
export function answerOf(response: unknown): Answer {
  const headers = field(response, 'headers');
  const get = field(headers, 'get');
  const header = (name: string): string | undefined => {
    const value: unknown = typeof get === 'function' ? Reflect.apply(get, headers, [name]) : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  return {
    status: vendorError.statusOf(field(response, 'status')),
    header,
    readBody: () => {
      // The length of a compressed body differs from the length of its content.
      const length = header('content-encoding') === undefined ? header('content-length') : undefined;
      return ringStorage.readBody(field(response, 'data'), length && Number(length));
    },
  };
}

/** A property of an answer, including inherited getters: a `fetch` response has no other properties. */
export function field(answer: unknown, name: string): unknown {
  return Reflect.get(Object(answer), name);
}
