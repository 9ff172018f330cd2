import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { HISTORIES, historyOf } from './history.ts';
import { scenesOf } from './scenes.ts';

/*
 * Writes traces of a TypeScript member, one JSON object per line. Members in other languages must behave in the same
 * way.
 *
 *   node test/traces/main.ts --out traces.jsonl --seed 1 --scenes 4 [--history W+k-older]
 */
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'traces.jsonl' },
    seed: { type: 'string', default: '1' },
    scenes: { type: 'string', default: '4' },
    history: { type: 'string', multiple: true, default: [...HISTORIES] },
  },
});
const out = createWriteStream(values.out);
let steps = 0;
for (const name of values.history) {
  const history = await historyOf(name, Number(values.seed));
  for await (const line of scenesOf(history, Number(values.seed), Number(values.scenes))) {
    if ('expected' in line) steps += 1;
    if (!out.write(`${JSON.stringify(line)}\n`)) await once(out, 'drain');
  }
}
out.end();
await once(out, 'finish');
process.stdout.write(`${steps} steps\n`);
