import { readFileSync } from 'node:fs';
import { createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';
import { ask } from './desk.ts';

// One member of a fleet, as a process: serves its metrics, and calls of its own desk, until it is ended. Prints where.

const [ringPath = '', keyPath = '', ringName = ''] = process.argv.slice(2);
/** What becomes of the tokens of a round; the one that is opened is the most of them. */
const ROUND = ['open', 'open', 'changed', 'open', 'made up', 'open', 'other tool', 'other tool'] as const;

const meter = await startScrapedMeter();
const bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
const codec = await createKmsCodec({
  ringName,
  ring: fileRing(ringPath),
  keyWrapper: localKeyWrapper({ masterKey: readFileSync(keyPath, 'utf8').trim() }),
  create: 'never',
});
bridge.observe(codec, { ringName });
process.stdout.write(`${meter.url}\n`);
// The ring's timers keep no process alive, and the exporter's server does: it ends with its parent.
process.stdin.on('end', () => process.exit()).resume();

for (let round = 0; ; round++) {
  const token = String(Reflect.get(Object(await ask(codec, undefined)), 'requestState'));
  const what = ROUND[round % ROUND.length];
  if (what === 'open') await ask(codec, token);
  if (what === 'changed') await ask(codec, `${token.slice(0, -8)}AAAAAAAA`);
  if (what === 'made up') await ask(codec, 'nonsense');
  if (what === 'other tool') await ask(codec, token, 'another tool');
  // A load that goes up and down, so that there is something to see.
  await new Promise((resolve) => setTimeout(resolve, 20 + 15 * Math.sin(Date.now() / 4_000)));
}
