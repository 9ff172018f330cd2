import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { callTool } from '../support/call-tool.ts';
import { peerFleet } from './peer-fleet.ts';
import type { ServerProcess } from './processes.ts';

const GUIDE = fileURLToPath(new URL('../../docs/guides/python-parity.md', import.meta.url));
const [BEGIN, END] = ['<!-- arguments: begin -->', '<!-- arguments: end -->'];

/** Arguments as sent, and as JSON.parse changes them. */
const LOST: readonly (readonly [argumentsText: string, why: string])[] = [
  ['{"x":1.0}', 'JavaScript reads an integral float as an integer'],
  ['{"x":-3.0}', 'the same, negative'],
  ['{"x":1e5}', 'the same, with an exponent'],
  ['{"x":1.5e1}', 'the same: 15.0'],
  ['{"x":1e15}', 'the same, as long as Python writes it without an exponent'],
  ['{"x":1e-400}', 'too small to distinguish from zero: 0.0'],
  ['{"x":-0}', 'an integer in Python, which has no negative zero'],
  ['{"x":9007199254740992}', 'beyond 2^53 - 1: Python keeps every digit, but JavaScript may round the number'],
  ['{"x":9007199254740993}', 'the same, and it is rounded'],
  ['{"x":18446744073709551616}', 'the same: 2^64'],
  ['{"x":1000000000000000000000}', 'the same: from 10^21 on even the spelling differs'],
  ['{"x":[{"y":2.0}]}', 'at any depth'],
];
/** Arguments that look problematic, but are not. */
const KEPT: readonly string[] = [
  '{"x":1}',
  '{"x":0.1}',
  '{"x":-0.0}',
  '{"x":1e16}',
  '{"x":1e300}',
  '{"x":9007199254740991}',
  '{"b":1,"a":2}',
  '{"x":"\\ud800"}',
  '{"x":"\u20ac"}',
  '{"x":{"__proto__":{"y":1}}}',
];

const fleet = peerFleet();

type Crossing = 'unseals' | 'refused';

async function crossing(sealer: ServerProcess, opener: ServerProcess, argumentsText: string): Promise<Crossing> {
  const tool = { name: 'keep', user: 'ada', argumentsText };
  const { result } = await callTool(sealer.url, tool);
  const token = result?.requestState;
  if (token === undefined) throw new Error(`${sealer.name} sealed nothing for ${argumentsText}`);
  const { result: opened, error } = await callTool(opener.url, { ...tool, requestState: token });
  if (opened?.content?.[0]?.text === 'kept') return 'unseals';
  expect(error).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } });
  return 'refused';
}

test('servers follow the table in the guide for arguments that JSON.parse changes', async () => {
  const { serve } = fleet();
  const typescript = await serve('typescript', 'typescript 1');
  const python = await serve('python', 'python 1');
  const crossings = async (argumentsText: string): Promise<readonly Crossing[]> => [
    await crossing(python, typescript, argumentsText),
    await crossing(typescript, python, argumentsText),
    await crossing(typescript, typescript, argumentsText),
    await crossing(python, python, argumentsText),
  ];

  for (const argumentsText of KEPT) {
    expect(await crossings(argumentsText), argumentsText).toEqual(['unseals', 'unseals', 'unseals', 'unseals']);
  }

  const rows = [
    '| arguments as sent | why | Python to TypeScript | TypeScript to Python | within one language |',
    '|---|---|---|---|---|',
  ];
  for (const [argumentsText, why] of LOST) {
    const [there, back, ...same] = await crossings(argumentsText);
    expect([there, back, ...same], argumentsText).toEqual(['refused', 'refused', 'unseals', 'unseals']);
    rows.push(`| \`${argumentsText}\` | ${why} | ${there} | ${back} | ${same[0]} |`);
  }
  const guide = await readFile(GUIDE, 'utf8');
  const [before = '', rest = ''] = guide.split(BEGIN);
  const [, after = ''] = rest.split(END);
  const written = `${before}${BEGIN}\n\n${rows.join('\n')}\n\n${END}${after}`;
  if (process.env['SEALRING_WRITE_DOCS'] === '1') await writeFile(GUIDE, written);
  expect(await readFile(GUIDE, 'utf8')).toBe(written);
});
