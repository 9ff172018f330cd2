import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as core from '@sealring/core';
import * as dynamodb from '@sealring/dynamodb';
import * as mcp from '@sealring/mcp';
import * as postgres from '@sealring/postgres';
import * as redis from '@sealring/redis';
import { expect, test } from 'vitest';

const page = readFileSync(fileURLToPath(new URL('../../docs/errors.md', import.meta.url)), 'utf8');
const anchors = new Map(
  [...page.matchAll(/^#{2,3} (.*)$/gm)].map(({ 1: title = '' }) => [
    `docs/errors.md#${title
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-')}`,
    title,
  ]),
);

const classes = [core, mcp, redis, postgres, dynamodb].flatMap((names) =>
  Object.entries(names).flatMap(([name, value]) =>
    typeof value === 'function' && value.prototype instanceof Error ? [[name, value.prototype] as const] : [],
  ),
);

test.each(classes)('%s has a help link for each of its kinds or reasons', (name, prototype) => {
  const words = [...page.matchAll(new RegExp(`^### ${name}: (.*)$`, 'gm'))].map(({ 1: word = '' }) => word);
  for (const word of words.length === 0 ? [''] : words) {
    const error = Object.assign(Object.create(prototype), { kind: word, reason: word });
    const [, path = error.help] =
      /^https:\/\/github\.com\/sealring\/sealring\/blob\/main\/(.*)$/.exec(error.help) ?? [];
    expect(anchors.get(path), error.help).toBe(word === '' ? name : `${name}: ${word}`);
    // Found on the prototype: an error that is thrown for every hostile token carries no text more.
    expect(Object.hasOwn(error, 'help')).toBe(false);
  }
});
