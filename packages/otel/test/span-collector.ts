import { createServer } from 'node:http';
// @boundaries-ignore code that the tests of all packages share is not a package
import { closed, listening } from '../../../test/support/loopback.ts';

/** A span as it was on the wire. */
export interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly events: readonly { readonly name: string; readonly attributes: WireSpan['attributes'] }[];
}

/** A collector for spans in OTLP over HTTP, as JSON. */
export interface SpanCollector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly WireSpan[];
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: WireSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body: {
        readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[] }[];
      } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      spans.push(...body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  const url = await listening(server);
  return { url, spans, [Symbol.asyncDispose]: () => closed(server) };
}
