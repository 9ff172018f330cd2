import { runInThisContext } from 'node:vm';
import { afterAll, describe, expect, test } from 'vitest';
import { readCorpus } from './corpus.ts';
import { Coverage } from './coverage.ts';
import { fuzz } from './fuzz.ts';
import { bytes, named, type Parser, text } from './parser.ts';
import { allParsers } from './parsers.ts';

/** The time that every test run spends on a parser. The long run is `npm run fuzz`. */
const INPUTS = 2_000;

// This runs before the parsers are loaded: functions that were compiled earlier are counted only as a whole.
const coverage = new Coverage();
const parsers = await allParsers();
afterAll(() => coverage.close());

describe('bytes that an attacker chose (F5, F17, F18, F26, F30)', () => {
  test.for(parsers)(
    'bytes that an attacker chose neither crash nor block a parser, which throws only its own errors: $name',
    async (parser) => {
      const outcome = await fuzz(parser, coverage, { inputs: INPUTS, seed: 1, corpus: readCorpus(parser.name) });
      expect(outcome.failures.map(({ input, what }) => `${what}: ${Buffer.from(input).toString('base64')}`)).toEqual(
        [],
      );
    },
  );

  test.for(parsers)('$name accepts a seed, so that fuzzing reaches past its first check', async (parser) => {
    const accepted: Uint8Array[] = [];
    for (const seed of parser.seeds) if (await accepts(parser, seed)) accepted.push(seed);
    expect(accepted).not.toEqual([]);
  });
});

describe('the fuzzer', () => {
  test('finds an exception that a parser must not throw', async () => {
    expect(
      await whatFails((input) => (input.includes('}') ? undefined : Reflect.get(JSON.parse('null'), 'x'))),
    ).toContain('TypeError');
  });

  test('finds a promise that rejects with such an exception', async () => {
    expect(
      await whatFails(async (input) => (input.includes('}') ? undefined : Reflect.get(JSON.parse('null'), 'x'))),
    ).toContain('TypeError');
  });

  test('finds a thrown value that is not an Error', async () => {
    expect(
      await whatFails((input) => {
        if (!input.includes('}')) throw 'a text';
      }),
    ).toContain('string');
  });

  test('finds an input that takes more than 50 ms every time', async () => {
    const last = { ms: 0 };
    const slow = (input: string): void => {
      if (input.includes('}')) return;
      const until = performance.now() + 60;
      while (performance.now() < until) last.ms += 1;
    };
    expect(await whatFails(slow, 40)).toContain('took');
  });

  test('ignores an input that takes more than 50 ms only once', async () => {
    const slowOnce = { isDue: true };
    const slow = (): void => {
      const until = performance.now() + (slowOnce.isDue ? 60 : 0);
      slowOnce.isDue = false;
      while (performance.now() < until);
    };
    expect(await whatFails(slow, 40)).toBe('');
  });

  test('finds a fault behind five checks of one character each, because it keeps inputs that pass one', async () => {
    // Chance alone would need some 10^15 inputs.
    const source = `(text) => {
      if (text[0] === '[') if (text[1] === '"') if (text[2] === ':') if (text[3] === '-') if (text[4] === ',') null.x;
    }`;
    const behindChecks = runInThisContext(source, { filename: '/packages/planted/src/planted.js' });
    expect(await whatFails(behindChecks, 40_000)).toContain('TypeError');
  });
});

/** Whether a parser accepts an input. @throws every error that it must not throw. */
async function accepts(parser: Parser, input: Uint8Array): Promise<boolean> {
  try {
    await parser.parse(input);
    return true;
  } catch (error) {
    if (error instanceof Error && parser.refuses(error)) return false;
    throw error;
  }
}

function planted(parse: (input: string) => unknown): Parser {
  return {
    name: 'planted',
    seeds: [bytes('{"a":1}')],
    words: ['{'],
    refuses: named('SyntaxError'),
    parse: (input) => parse(text(input)),
  };
}

async function whatFails(parse: (input: string) => unknown, inputs = 2_000): Promise<string> {
  const { failures } = await fuzz(planted(parse), coverage, { inputs, seed: 2 });
  return failures[0]?.what ?? '';
}
