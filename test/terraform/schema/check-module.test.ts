import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkModule } from './check-module.ts';
import type { Block, ProviderSchema } from './provider-schema.ts';

const NOTHING: Block = { attributes: {}, block_types: {} };

/** A provider with one of each. */
const SCHEMA: ProviderSchema = {
  source: 'example/acme',
  version: '3.2.1',
  provider: { attributes: { region: { type: 'string', optional: true } }, block_types: {} },
  resource_schemas: {
    acme_key: {
      attributes: {
        name: { type: 'string', required: true },
        count_of_uses: { type: 'number', optional: true },
        exportable: { type: 'bool', optional: true },
        labels: { type: ['map', 'string'], optional: true },
        users: { type: ['set', 'string'], optional: true },
        id: { type: 'string', optional: true, computed: true },
        arn: { type: 'string', computed: true },
        primary: { type: ['list', ['object', { state: 'string' }]], computed: true },
      },
      block_types: {
        template: {
          nesting_mode: 'list',
          min_items: 1,
          max_items: 1,
          block: { attributes: { algorithm: { type: 'string', required: true } }, block_types: {} },
        },
        rule: {
          nesting_mode: 'set',
          block: { attributes: { days: { type: 'number', optional: true } }, block_types: {} },
        },
        timeouts: { nesting_mode: 'single', block: NOTHING },
      },
    },
  },
  data_source_schemas: {
    acme_account: { attributes: { number: { type: 'string', computed: true } }, block_types: {} },
  },
};

/** A valid module, by file. */
const RIGHT = {
  'versions.tf': `
terraform {
  required_version = ">= 1.9"
  required_providers {
    acme = {
      source  = "example/acme"
      version = "~> 3.2"
    }
  }
}
`,
  'variables.tf': `
variable "name" {
  description = "The name."
  type        = string

  validation {
    condition     = length(var.name) > 0
    error_message = "name must not be empty."
  }
}

variable "days" {
  description = "For how long."
  type        = list(number)
  default     = []
}
`,
  'main.tf': `
data "acme_account" "current" {}

locals {
  users = [for user in ["ada", "bob"] : "\${user}@\${data.acme_account.current.number}"]
}

resource "acme_key" "this" {
  name   = var.name
  labels = { owner = "us" }
  users  = local.users

  template {
    algorithm = "AES"
  }

  dynamic "rule" {
    for_each = var.days
    content {
      days = rule.value
    }
  }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [labels]
  }
}

resource "acme_key" "many" {
  count = 2
  name  = "key-\${count.index}"
  dynamic "template" {
    for_each = []
    content {
      algorithm = template.value
    }
  }
  dynamic "template" {
    for_each = ["AES"]
    content {
      algorithm = acme_key.this.template[0].algorithm
    }
  }
}
`,
  'outputs.tf': `
output "arns" {
  description = "Their names."
  value       = [acme_key.this.arn, one(acme_key.many[*].arn), acme_key.this.primary[0].state]
}
`,
  'tests/facts.tftest.hcl': `
mock_provider "acme" {
  source = "./tests/mocks"

  mock_resource "acme_key" {
    defaults = { id = "key" }
  }
}

variables {
  name = "payments"
}

run "key" {
  command = plan
  variables {
    days = [1]
  }
  assert {
    condition     = acme_key.this.name == "payments" && length(output.arns) == 3
    error_message = "It must have its name."
  }
}

run "refuses" {
  command = plan
  variables {
    name = ""
  }
  expect_failures = [var.name]
}
`,
  'tests/mocks/acme.tfmock.hcl': `
mock_resource "acme_key" {
  defaults = { arn = "acme:key" }
}
mock_data "acme_account" {
  defaults = { number = "1" }
}
`,
  'examples/one/main.tf': `
terraform {
  required_version = ">= 1.9"
  required_providers {
    acme = {
      source  = "example/acme"
      version = "~> 3.2"
    }
  }
}

provider "acme" {
  region = "here"
}

module "sealring" {
  source = "../.."
  name   = "payments"
}

output "arns" {
  description = "Their names."
  value       = module.sealring.arns
}
`,
};
type File = keyof typeof RIGHT;

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sealring-schema-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Writes the valid module, with one thing changed. */
function write(file?: File, from = '', to = ''): void {
  for (const [name, text] of Object.entries(RIGHT)) {
    if (name === file && !text.includes(from)) throw new Error(`${file} has no ${from}`);
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), name === file ? text.replace(from, () => to) : text);
  }
}

describe('the checker of modules', () => {
  test('finds nothing in a correct module and its example', async () => {
    write();
    expect(await checkModule(root, SCHEMA)).toEqual([]);
    expect(await checkModule(join(root, 'examples/one'), SCHEMA)).toEqual([]);
  });

  const KEY = 'acme_key.this';
  const broken: [title: string, file: File, from: string, to: string, fault: string][] = [
    [
      'an unknown resource',
      'main.tf',
      'resource "acme_key" "many"',
      'resource "acme_kye" "many"',
      'acme_kye.many: unknown resource',
    ],
    [
      'an unknown data source',
      'main.tf',
      'data "acme_account" "current"',
      'data "acme_acount" "current"',
      'data.acme_acount.current: unknown data',
    ],
    [
      'another provider',
      'examples/one/main.tf',
      'provider "acme"',
      'provider "amce"',
      'provider.amce: unknown provider',
    ],
    ['an unknown attribute', 'main.tf', 'labels =', 'label =', `${KEY}: unknown attribute label`],
    [
      'an unknown attribute in a block',
      'main.tf',
      'algorithm = "AES"',
      'algorithm = "AES"\n    size = 1',
      `${KEY}: template: unknown attribute size`,
    ],
    [
      'an unknown attribute in a dynamic block',
      'main.tf',
      'days = rule.value',
      'day = rule.value',
      `${KEY}: rule: unknown attribute day`,
    ],
    ['an unknown block', 'main.tf', '  lifecycle {', '  rules {}\n  lifecycle {', `${KEY}: unknown block rules`],
    ['an unknown dynamic block', 'main.tf', 'dynamic "rule"', 'dynamic "role"', `${KEY}: unknown block role`],
    [
      'an unknown setting of a lifecycle',
      'main.tf',
      'prevent_destroy',
      'prevents_destroy',
      `${KEY}: lifecycle: unknown attribute prevents_destroy`,
    ],
    ['a missing attribute', 'main.tf', 'name   = var.name', '', `${KEY}: no name`],
    ['a missing attribute in a block', 'main.tf', 'algorithm = "AES"', '', `${KEY}: template: no algorithm`],
    ['a missing block', 'main.tf', '  template {\n    algorithm = "AES"\n  }', '', `${KEY}: no template`],
    [
      'a block too many',
      'main.tf',
      '  template {',
      '  template {\n    algorithm = "DES"\n  }\n  template {',
      `${KEY}: more than one template`,
    ],
    [
      'a computed attribute that is set',
      'main.tf',
      'labels =',
      'arn = "x"\n  labels =',
      `${KEY}: arn is computed only`,
    ],
    [
      'a block as an attribute',
      'main.tf',
      'template {\n    algorithm = "AES"\n  }',
      'template = [{ algorithm = "AES" }]',
      `${KEY}: template is a block`,
    ],
    [
      'an attribute as a block',
      'main.tf',
      'labels = { owner = "us" }',
      'labels {\n    owner = "us"\n  }',
      `${KEY}: labels is an attribute`,
    ],
    ['a list for a text', 'main.tf', 'name   = var.name', 'name = ["a"]', `${KEY}: name is a string`],
    ['a text for a list', 'main.tf', 'users  = local.users', 'users = "ada"', `${KEY}: users is a set`],
    ['a list for a map', 'main.tf', '{ owner = "us" }', '["us"]', `${KEY}: labels is a map`],
    [
      'a text for a number',
      'main.tf',
      'labels =',
      'count_of_uses = "many"\n  labels =',
      `${KEY}: count_of_uses is a number`,
    ],
    ['a number for a yes or no', 'main.tf', 'labels =', 'exportable = 1\n  labels =', `${KEY}: exportable is a bool`],
    [
      'a reference to an attribute that is not there',
      'outputs.tf',
      'acme_key.this.arn',
      'acme_key.this.urn',
      'output.arns: acme_key.this.urn: no attribute urn',
    ],
    [
      'a reference to an attribute of an object',
      'outputs.tf',
      '.state',
      '.status',
      'output.arns: acme_key.this.primary[].status: no attribute status',
    ],
    [
      'a reference to an attribute in a block',
      'main.tf',
      'template[0].algorithm',
      'template[0].size',
      'acme_key.many: acme_key.this.template[].size: no attribute size',
    ],
    [
      'a reference into a list of blocks without saying which',
      'main.tf',
      'template[0].',
      'template.',
      'acme_key.many: acme_key.this.template.algorithm: template is a list',
    ],
    [
      'a reference into a text',
      'outputs.tf',
      'acme_key.this.arn',
      'acme_key.this.arn.x',
      'output.arns: acme_key.this.arn.x: nothing in a string',
    ],
    [
      'a reference into a list',
      'outputs.tf',
      'primary[0].state',
      'primary.state',
      'output.arns: acme_key.this.primary.state: a list has no state',
    ],
    [
      'one of several without saying which',
      'outputs.tf',
      'many[*]',
      'many',
      'output.arns: acme_key.many.arn: there are several: which?',
    ],
    [
      'which of one',
      'outputs.tf',
      'acme_key.this.arn',
      'acme_key.this[0].arn',
      'output.arns: acme_key.this[].arn: there is only one',
    ],
    [
      'an attribute of a data source',
      'main.tf',
      'current.number',
      'current.nummer',
      'locals: data.acme_account.current.nummer: no attribute nummer',
    ],
    [
      'a resource that is not declared',
      'outputs.tf',
      'acme_key.this.arn',
      'acme_key.that.arn',
      'output.arns: acme_key.that.arn: not declared',
    ],
    [
      'a data source that is not declared',
      'main.tf',
      'acme_account.current',
      'acme_account.other',
      'locals: data.acme_account.other.number: not declared',
    ],
    ['an undeclared variable', 'main.tf', 'var.name', 'var.nmae', `${KEY}: var.nmae: no such variable`],
    [
      'an undeclared variable in a text',
      'main.tf',
      'key-${count.index}',
      'key-${var.nmae}',
      'acme_key.many: var.nmae: no such variable',
    ],
    ['an undeclared local', 'main.tf', '= local.users', '= local.user', `${KEY}: local.user: no such local`],
    [
      'an undeclared output of a module',
      'examples/one/main.tf',
      'module.sealring.arns',
      'module.sealring.arn',
      'output.arns: module.sealring.arn: no such output',
    ],
    [
      'an undeclared module',
      'examples/one/main.tf',
      'module.sealring',
      'module.ring',
      'output.arns: module.ring.arns: no such module',
    ],
    ['a name that only a loop knows', 'main.tf', '"ada", "bob"]', '"ada", user]', 'locals: user: not declared'],
    ['count where there is none', 'main.tf', 'count = 2', '', 'acme_key.many: count.index: not declared'],
    ['each where there is none', 'main.tf', 'count.index', 'each.key', 'acme_key.many: each.key: not declared'],
    [
      "a dynamic block's name outside it",
      'main.tf',
      'name   = var.name',
      'name = rule.value',
      `${KEY}: rule.value: not declared`,
    ],
    [
      "a dynamic block's name in another block",
      'main.tf',
      'algorithm = "AES"',
      'algorithm = rule.value',
      `${KEY}: rule.value: not declared`,
    ],
    [
      'a variable that a module does not have',
      'examples/one/main.tf',
      '  name ',
      '  title = "x"\n  name ',
      'module.sealring: unknown attribute title',
    ],
    [
      'a variable that a module must be given',
      'examples/one/main.tf',
      '  name   = "payments"',
      '',
      'module.sealring: no name',
    ],
    ['an unused variable', 'main.tf', 'name   = var.name', 'name = "x"', 'variable.name: unused'],
    ['an unused local', 'main.tf', 'users  = local.users', '', 'local.users: unused'],
    [
      'a variable that nobody described',
      'variables.tf',
      'description = "The name."',
      '',
      'variable.name: no description',
    ],
    ['a variable without a type', 'variables.tf', 'type        = string', '', 'variable.name: no type'],
    [
      'an output that nobody described',
      'outputs.tf',
      'description = "Their names."',
      '',
      'output.arns: no description',
    ],
    ['a resource that is declared twice', 'main.tf', '"many"', '"this"', `${KEY}: declared twice`],
    [
      'another version of the provider',
      'versions.tf',
      '~> 3.2',
      '~> 4.0',
      'terraform: the provider must be example/acme ~> 3.2',
    ],
    [
      'another source of the provider',
      'versions.tf',
      'example/acme',
      'somebody/acme',
      'terraform: the provider must be example/acme ~> 3.2',
    ],
    ['no version of Terraform', 'versions.tf', 'required_version = ">= 1.9"', '', 'terraform: no required_version'],
    [
      'an unknown setting of a run',
      'tests/facts.tftest.hcl',
      'expect_failures',
      'expected_failures',
      'run.refuses: unknown attribute expected_failures',
    ],
    [
      'an undeclared variable that a run gives',
      'tests/facts.tftest.hcl',
      'days = [1]',
      'day = [1]',
      'run.key: unknown variable day',
    ],
    [
      'an undeclared variable that all runs give',
      'tests/facts.tftest.hcl',
      'name = "payments"',
      'title = "x"',
      'variables: unknown variable title',
    ],
    [
      'an undeclared variable that must be refused',
      'tests/facts.tftest.hcl',
      '[var.name]',
      '[var.title]',
      'run.refuses: var.title: no such variable',
    ],
    [
      'an attribute that a run asserts',
      'tests/facts.tftest.hcl',
      'acme_key.this.name',
      'acme_key.this.title',
      'run.key: acme_key.this.title: no attribute title',
    ],
    [
      'an output that a run asserts',
      'tests/facts.tftest.hcl',
      'output.arns',
      'output.arn',
      'run.key: output.arn: no such output',
    ],
    [
      'an assertion without a message',
      'tests/facts.tftest.hcl',
      'error_message = "It must have its name."',
      '',
      'run.key: assert: no error_message',
    ],
    [
      'a mock of another provider',
      'tests/facts.tftest.hcl',
      'mock_provider "acme"',
      'mock_provider "amce"',
      'mock_provider.amce: unknown provider',
    ],
    [
      'a mock of an unknown type',
      'tests/mocks/acme.tfmock.hcl',
      'mock_resource "acme_key"',
      'mock_resource "acme_kye"',
      'mock_resource.acme_kye: unknown',
    ],
    [
      'a mock in a test of an attribute that is not there',
      'tests/facts.tftest.hcl',
      '{ id =',
      '{ di =',
      'mock_provider.acme: mock_resource.acme_key: no attribute di',
    ],
    [
      'a mock of an attribute that is not there',
      'tests/mocks/acme.tfmock.hcl',
      'number =',
      'nummer =',
      'mock_data.acme_account: no attribute nummer',
    ],
  ];

  test.each(broken)('a module with %s is reported', async (_title, file, from, to, fault) => {
    write(file, from, to);
    const folder = file.startsWith('examples/') ? join(root, 'examples/one') : root;
    expect(await checkModule(folder, SCHEMA)).toContain(fault);
  });

  test.each([
    ['text that is not HCL', 'template {', 'template {{'],
    ['an attribute that is given twice', 'labels =', 'name = "x"\n  labels ='],
    ['an expression that does not end', '"ada", "bob"]', '"ada", "bob"'],
    ['an unknown block at the edge', 'resource "acme_key"', 'ressource "acme_key"'],
    ['an attribute at the edge', 'locals {', 'name = "x"\nlocals {'],
  ])('a module with %s is refused', async (_title, from, to) => {
    write('main.tf', from, to);
    await expect(checkModule(root, SCHEMA)).rejects.toThrow(/parse config|unknown block/);
  });
});
