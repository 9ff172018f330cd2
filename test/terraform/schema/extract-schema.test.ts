import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { extractSchema, laidOut } from './extract-schema.ts';
import { PROVIDERS, type ProviderName, pathOfSchema, readSchema } from './provider-schema.ts';

/** A folder with unpacked packages, each under its name. They are too large for a dependency: some 300 MB each. */
const PACKAGES = process.env['SEALRING_PROVIDER_PACKAGES'];
const NAMES = Object.keys(PROVIDERS) as ProviderName[];

describe.each(NAMES)('the schema of %s', (name) => {
  const published = PROVIDERS[name];

  test('the schema has every type that is listed, and no other', () => {
    const schema = readSchema(name);
    expect(Object.keys(schema.resource_schemas)).toEqual(published.resources);
    expect(Object.keys(schema.data_source_schemas)).toEqual(published.data);
  });

  test.skipIf(PACKAGES === undefined)('matches the published package', () => {
    const folder = join(PACKAGES ?? '', published.package);
    if (!existsSync(folder)) throw new Error(`no ${folder}`);
    const extracted = extractSchema(folder, published);
    if (process.env['SEALRING_WRITE_DOCS'] === '1') writeFileSync(pathOfSchema(name), laidOut(extracted));
    expect(readSchema(name)).toEqual(extracted);
  });
});

test('extract-schema distinguishes required from computed arguments, and blocks from attributes', () => {
  const { google_kms_crypto_key: key, google_storage_bucket: bucket } = readSchema('google').resource_schemas;
  expect(key?.attributes).toMatchObject({
    key_ring: { type: 'string', required: true },
    labels: { type: ['map', 'string'], optional: true },
    primary: { type: ['list', ['object', { name: 'string', state: 'string' }]], computed: true },
    skip_initial_version_creation: { type: 'bool', optional: true },
  });
  expect(key?.attributes['primary']).not.toHaveProperty('optional');
  expect(key?.block_types).toMatchObject({
    timeouts: { nesting_mode: 'single' },
    version_template: { nesting_mode: 'list', max_items: 1, block: { attributes: { algorithm: { required: true } } } },
  });
  const rule = bucket?.block_types['lifecycle_rule'];
  expect(rule).not.toHaveProperty('max_items');
  expect(rule?.block.block_types).toMatchObject({ action: { min_items: 1 }, condition: { min_items: 1 } });
});
