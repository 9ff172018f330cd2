import type { Attribute, Block, NestedBlock, Type } from './provider-schema.ts';

/*
 * Terraform's own arguments of its blocks (Terraform documentation, "Terraform configuration language"; version 1.11),
 * as far as the modules here use them. Others are refused as unknown: add one when it is needed.
 */

/** Any value. */
const ANY: Type = 'dynamic';

function attributes(
  required: readonly string[],
  optional: readonly string[] = [],
): Readonly<Record<string, Attribute>> {
  return Object.fromEntries([
    ...required.map((name) => [name, { type: ANY, required: true }]),
    ...optional.map((name) => [name, { type: ANY, optional: true }]),
  ]);
}

function several(block: Block): NestedBlock {
  return { nesting_mode: 'list', block };
}

const condition = several({ attributes: attributes(['condition', 'error_message']), block_types: {} });

const lifecycle: NestedBlock = {
  nesting_mode: 'single',
  block: {
    attributes: attributes([], ['create_before_destroy', 'prevent_destroy', 'ignore_changes', 'replace_triggered_by']),
    block_types: { precondition: condition, postcondition: condition },
  },
};

/** Arguments of every resource and data source, besides its own. */
export const META: Block = {
  attributes: attributes([], ['count', 'for_each', 'depends_on', 'provider']),
  block_types: { lifecycle },
};

/** Arguments of every module call, besides the module's variables. */
export const MODULE_META: Block = {
  attributes: attributes(['source'], ['count', 'for_each', 'depends_on', 'providers']),
  block_types: {},
};

export const PROVIDER_META: Block = { attributes: attributes([], ['alias']), block_types: {} };

export const BLOCKS: Readonly<Record<string, Block>> = {
  terraform: {
    attributes: attributes(['required_version']),
    // Names that each module chooses.
    block_types: { required_providers: several({ attributes: {}, block_types: {} }) },
  },
  variable: {
    attributes: attributes(['description', 'type'], ['default', 'nullable', 'sensitive']),
    block_types: { validation: condition },
  },
  output: {
    attributes: attributes(['description', 'value'], ['sensitive', 'depends_on']),
    block_types: { precondition: condition },
  },
};

/** The block `run` of a file *.tftest.hcl. */
export const TEST_RUN: Block = {
  attributes: attributes([], ['command', 'expect_failures']),
  block_types: { assert: condition },
};

export function merged(...blocks: readonly Block[]): Block {
  return {
    attributes: Object.assign({}, ...blocks.map((block) => block.attributes)) as Block['attributes'],
    block_types: Object.assign({}, ...blocks.map((block) => block.block_types)) as Block['block_types'],
  };
}

/** A module's variables, as the arguments of a call. */
export function asBlock(variables: ReadonlyMap<string, { readonly attributes: ReadonlyMap<string, unknown> }>): Block {
  const required = [...variables].filter(([, { attributes: given }]) => !given.has('default')).map(([name]) => name);
  return {
    attributes: attributes(
      required,
      [...variables.keys()].filter((name) => !required.includes(name)),
    ),
    block_types: {},
  };
}
