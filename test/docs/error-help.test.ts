import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import * as core from '@sealring/core';
import * as dynamodb from '@sealring/dynamodb';
import * as mcp from '@sealring/mcp';
import * as postgres from '@sealring/postgres';
import * as redis from '@sealring/redis';
import { expect, test } from 'vitest';

const page = readFileSync(fileURLToPath(new URL('../../docs/errors.md', import.meta.url)), 'utf8');
const ADDRESS = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';
const titles = new Map(
  [...page.matchAll(/^#{2,3} (.*)$/gm)].map(({ 1: title = '' }) => [
    `${ADDRESS}#${title
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-')}`,
    title,
  ]),
);

/** The word is the kind or the reason of an error that has one, and the message of any other error. */
type ErrorClass = new (word: string, facts: object) => Error & { readonly help: string };

const classes = [core, mcp, redis, postgres, dynamodb].flatMap((names) =>
  Object.entries(names).flatMap(([name, value]) =>
    typeof value === 'function' && value.prototype instanceof Error
      ? [[name, value as unknown as ErrorClass] as const]
      : [],
  ),
);

test.each(classes)('%s has a help address that leads to the section for its kind or reason', (name, Class) => {
  const words = [...page.matchAll(new RegExp(`^### ${name}: (.*)$`, 'gm'))].map(({ 1: word = '' }) => word);
  for (const word of words.length === 0 ? [''] : words) {
    const error = new Class(word, { provider: 'local', operation: 'wrap' });
    expect(titles.get(error.help), error.help).toBe(word === '' ? name : `${name}: ${word}`);
  }
});

test.each(classes)('%s has its help as an own property, which loggers print', (name, Class) => {
  const [, word = ''] = new RegExp(`^### ${name}: (.*)$`, 'm').exec(page) ?? [];
  const error = new Class(word, { provider: 'local', operation: 'wrap' });
  expect(Object.keys(error)).toContain('help');
  expect(inspect(error)).toContain(error.help);
  expect(JSON.parse(JSON.stringify(error)).help).toBe(error.help);
});
