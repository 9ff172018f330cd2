import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A type as Terraform writes it: `"string"`, `["list", "string"]`, `["object", { "name": "string" }]`. */
export type Type =
  | string
  | readonly ['list' | 'set' | 'map', Type]
  | readonly ['object', Readonly<Record<string, Type>>];

export interface Attribute {
  readonly type: Type;
  readonly required?: true;
  readonly optional?: true;
  readonly computed?: true;
}

export interface NestedBlock {
  readonly nesting_mode: 'single' | 'list' | 'set';
  readonly min_items?: number;
  readonly max_items?: number;
  readonly block: Block;
}

/** The allowed contents of a body. */
export interface Block {
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly block_types: Readonly<Record<string, NestedBlock>>;
}

/** The part of a provider's schema that a module uses, in the format of `terraform providers schema -json`. */
export interface ProviderSchema {
  /** As in `required_providers`. */
  readonly source: string;
  readonly version: string;
  readonly provider: Block;
  readonly resource_schemas: Readonly<Record<string, Block>>;
  readonly data_source_schemas: Readonly<Record<string, Block>>;
}

/** A provider whose schema is stored here, and where it was published. */
export interface Published {
  readonly package: string;
  readonly version: string;
  /** The types that a module uses; more do no harm. */
  readonly resources: readonly string[];
  readonly data: readonly string[];
}

/** To add a provider, add a row, and its file, which `extract-schema.test.ts` writes. */
export const PROVIDERS = {
  google: {
    package: '@cdktf/provider-google',
    version: '16.12.1',
    resources: [
      'google_kms_crypto_key',
      'google_kms_crypto_key_iam_member',
      'google_kms_key_ring',
      'google_logging_metric',
      'google_monitoring_alert_policy',
      'google_project_iam_audit_config',
      'google_project_iam_custom_role',
      'google_service_account',
      'google_service_account_iam_member',
      'google_storage_bucket',
      'google_storage_bucket_iam_member',
    ],
    data: ['google_project'],
  },
} as const satisfies Record<string, Published>;
export type ProviderName = keyof typeof PROVIDERS;

export function pathOfSchema(name: ProviderName): string {
  return fileURLToPath(new URL(`./providers/${name}.json`, import.meta.url));
}

export function readSchema(name: ProviderName): ProviderSchema {
  return JSON.parse(readFileSync(pathOfSchema(name), 'utf8')) as ProviderSchema;
}

/** The name of the provider in a module: the last part of its source. */
export function localName({ source }: ProviderSchema): string {
  return source.split('/').at(-1) ?? '';
}
