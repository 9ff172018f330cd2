import { Metadata } from '@grpc/grpc-js';

/** The gRPC status codes, by their numbers. */
export const Status = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** The failure of a call: a gRPC status, with the details that Google's services add to it. */
export interface GrpcFailure {
  readonly code: number;
  readonly details: string;
  /** The violations of a `google.rpc.PreconditionFailure`. */
  readonly violations?: readonly { readonly type: string; readonly subject: string }[];
  /** The reason in a `google.rpc.ErrorInfo`. */
  readonly reason?: string;
  /** Sent as trailers. */
  readonly trailers?: Readonly<Record<string, string>>;
}

/** The trailers of a failure: a `google.rpc.Status` in `grpc-status-details-bin`, if there are details. */
export function trailersOf({ code, details, violations, reason, trailers = {} }: GrpcFailure): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  const messages: Buffer[] = [];
  if (violations !== undefined) {
    const entries = violations.map(({ type, subject }) => bytesField(1, [bytesField(1, type), bytesField(2, subject)]));
    messages.push(anyMessage('google.rpc.PreconditionFailure', entries));
  }
  if (reason !== undefined) {
    messages.push(anyMessage('google.rpc.ErrorInfo', [bytesField(1, reason), bytesField(2, 'googleapis.com')]));
  }
  if (messages.length > 0) {
    const status = [Buffer.from([(1 << 3) | 0, code]), bytesField(2, details), ...messages];
    metadata.set('grpc-status-details-bin', Buffer.concat(status));
  }
  return metadata;
}

/** Field 3 of a `google.rpc.Status`: a `google.protobuf.Any`. */
function anyMessage(type: string, fields: readonly Buffer[]): Buffer {
  return bytesField(3, [bytesField(1, `type.googleapis.com/${type}`), bytesField(2, fields)]);
}

/** A length-delimited field (Protocol Buffers encoding, wire type 2). */
function bytesField(field: number, value: string | readonly Buffer[]): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.concat(value);
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
