import { fileURLToPath } from 'node:url';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Attribute, Block, NestedBlock, ProviderSchema } from './provider-schema.ts';

/** A provider with a schema and no operations: enough for `validate`, and for `test` if the provider is mocked. */
export interface SchemaProvider {
  /** Environment variables for Terraform, so that it calls this process instead of a plugin. */
  readonly environment: { readonly TF_REATTACH_PROVIDERS: string };
  stop(): void;
}

/** Serves a schema over Terraform's protocol for plugins, on a port of 127.0.0.1. */
export async function serveSchema(schema: ProviderSchema): Promise<SchemaProvider> {
  const server = new Server();
  server.addService(serviceDefinition(), implementationOf(schema));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const plugin = {
    Protocol: 'grpc',
    ProtocolVersion: 5,
    Pid: process.pid,
    // Terraform does not end it.
    Test: true,
    Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
  };
  return {
    environment: { TF_REATTACH_PROVIDERS: JSON.stringify({ [`registry.terraform.io/${schema.source}`]: plugin }) },
    stop: () => server.forceShutdown(),
  };
}

function serviceDefinition(): ServiceDefinition {
  const definition = loadSync(fileURLToPath(new URL('./provider.proto', import.meta.url)), { keepCase: true });
  const { tfplugin5 } = loadPackageDefinition(definition) as unknown as {
    tfplugin5: { Provider: { service: ServiceDefinition } };
  };
  return tfplugin5.Provider.service;
}

function implementationOf(schema: ProviderSchema): UntypedServiceImplementation {
  const answer =
    (respond: (request: { config?: unknown }) => object) =>
    (call: { request: object }, callback: (error: null, response: object) => void): void =>
      callback(null, respond(call.request));
  const described = {
    provider: asMessage(schema.provider),
    resource_schemas: mapped(schema.resource_schemas, asMessage),
    data_source_schemas: mapped(schema.data_source_schemas, asMessage),
  };
  return {
    GetSchema: answer(() => described),
    PrepareProviderConfig: answer(({ config }) => ({ prepared_config: config })),
    ValidateResourceTypeConfig: answer(() => ({})),
    ValidateDataSourceConfig: answer(() => ({})),
    Stop: answer(() => ({})),
  };
}

function mapped<A, B>(values: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}

function asMessage(block: Block): object {
  return { version: 0, block: blockMessage(block) };
}

function blockMessage({ attributes, block_types: blocks }: Block): object {
  return {
    attributes: Object.entries(attributes).map(([name, { type, ...flags }]: [string, Attribute]) => ({
      name,
      type: Buffer.from(JSON.stringify(type)),
      ...flags,
    })),
    block_types: Object.entries(blocks).map(([name, nested]: [string, NestedBlock]) => ({
      type_name: name,
      block: blockMessage(nested.block),
      nesting: nested.nesting_mode.toUpperCase(),
      min_items: nested.min_items ?? 0,
      max_items: nested.max_items ?? 0,
    })),
  };
}
