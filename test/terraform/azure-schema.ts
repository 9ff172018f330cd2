import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { extractSchema } from './schema/extract-schema.ts';
import type { Block, ProviderSchema, Published } from './schema/provider-schema.ts';

/** The types that terraform/azure-key-vault and its examples use. */
export const AZURERM: Published = {
  package: '@cdktf/provider-azurerm',
  version: '14.23.1',
  resources: [
    'azurerm_federated_identity_credential',
    'azurerm_key_vault',
    'azurerm_key_vault_key',
    'azurerm_log_analytics_workspace',
    'azurerm_monitor_action_group',
    'azurerm_monitor_activity_log_alert',
    'azurerm_monitor_diagnostic_setting',
    'azurerm_monitor_scheduled_query_rules_alert_v2',
    'azurerm_resource_group',
    'azurerm_role_assignment',
    'azurerm_role_definition',
    'azurerm_storage_account',
    'azurerm_storage_container',
    'azurerm_storage_management_policy',
    'azurerm_user_assigned_identity',
  ],
  data: ['azurerm_client_config'],
};

export const AZURE_SCHEMA = fileURLToPath(new URL('azure-schema.json', import.meta.url));

export function readAzureSchema(): ProviderSchema {
  return JSON.parse(readFileSync(AZURE_SCHEMA, 'utf8')) as ProviderSchema;
}

/**
 * Like `extractSchema`, but with the settings that the provider's `features { storage { } }` accepts. @param folder the
 * unpacked package.
 */
export function extractAzureSchema(folder: string): ProviderSchema {
  const schema = extractSchema(folder, AZURERM);
  const { features, ...others } = schema.provider.block_types;
  if (features === undefined) throw new Error('the provider has no features');
  const storage = { nesting_mode: 'list' as const, max_items: 1, block: storageFeatures(folder) };
  const filled = { ...features, block: { attributes: {}, block_types: { storage } } };
  return { ...schema, provider: { ...schema.provider, block_types: { ...others, features: filled } } };
}

function storageFeatures(folder: string): Block {
  const types = readFileSync(join(folder, 'lib/provider/index.d.ts'), 'utf8');
  const body = /^export interface AzurermProviderFeaturesStorage \{\n(.*?)^\}$/ms.exec(types)?.[1];
  if (body === undefined) throw new Error('no features of storage');
  const names = [...body.matchAll(/^ {4}readonly (\w+)\?: boolean/gm)].map(([, name = '']) => name);
  const attributes = names.map((name) => [snakeCase(name), { type: 'bool', optional: true }]);
  return { attributes: Object.fromEntries(attributes) as Block['attributes'], block_types: {} };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
