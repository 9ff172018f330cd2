import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { FakeGcpKms, type KmsAnswer, type KmsMethod, type KmsRequest } from './fake-kms.ts';
import { type GrpcFailure, Status, trailersOf } from './grpc-failure.ts';

/** A fake Cloud KMS on a loopback port. */
export interface RunningGcpKms {
  readonly kms: FakeGcpKms;
  readonly host: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Resets every connection; new ones are accepted. */
  resetConnections(): void;
  stop(): Promise<void>;
}

const SERVICE = 'google.cloud.kms.v1.KeyManagementService';
const protos: object = createRequire(import.meta.url)('@google-cloud/kms/build/protos/protos.json');

/** Starts a fake Cloud KMS: gRPC without TLS, on the SDK's own protocol description. Port 0 takes a free one. */
export async function startGcpKms({ port = 0 }: { readonly port?: number } = {}): Promise<RunningGcpKms> {
  const kms = new FakeGcpKms();
  const grpc = new Server();
  grpc.addService(serviceDefinition(), { encrypt: handler(kms, 'encrypt'), decrypt: handler(kms, 'decrypt') });

  // A listener of this project, because a gRPC server does not allow its sockets to be reset.
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  let accepted = 0;
  const listener = createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  listener.listen(port, '127.0.0.1');
  await once(listener, 'listening');

  return {
    kms,
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    resetConnections() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    async stop() {
      kms.heal();
      listener.close();
      grpc.forceShutdown();
      // No reset: it would leave a handle behind for a socket that is shutting down, and Node 24 then never ends.
      for (const socket of sockets) socket.destroy();
      await once(listener, 'close');
    },
  };
}

function serviceDefinition(): ServiceDefinition {
  // Load the definitions as the SDK does: 64-bit numbers and enums as text, and absent fields with their defaults.
  const definition = fromJSON(protos, { longs: String, enums: String, defaults: true, oneofs: true })[SERVICE];
  if (definition === undefined) throw new Error(`${SERVICE} is not in the SDK's protos`);
  return definition as ServiceDefinition;
}

type Handler = (call: ServerUnaryCall<KmsRequest, KmsAnswer>, answer: sendUnaryData<KmsAnswer>) => void;

function handler(kms: FakeGcpKms, method: KmsMethod): Handler {
  return (call, answer) => {
    const [authorization = ''] = call.metadata.get('authorization');
    const caller = String(authorization).replace(/^Bearer /, '');
    let isAnswered = false;
    // It is also called for failed calls.
    call.on('cancelled', () => {
      if (!isAnswered) kms.cancelled++;
    });
    kms.handle(method, call.request, caller).then(
      (value) => {
        isAnswered = true;
        answer(null, value);
      },
      (error: unknown) => {
        isAnswered = true;
        const failure = asFailure(error);
        answer({ code: failure.code, details: failure.details, metadata: trailersOf(failure) });
      },
    );
  };
}

function asFailure(error: unknown): GrpcFailure {
  const isFailure = typeof error === 'object' && error !== null && 'code' in error && 'details' in error;
  return isFailure
    ? (error as GrpcFailure)
    : { code: Status.INTERNAL, details: `a defect of the fake: ${String(error)}` };
}
