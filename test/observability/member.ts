import { readFileSync } from 'node:fs';
import { createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';
import { ask } from './desk.ts';

// One member of a fleet, as a process: serves its metrics, and makes its own calls. Prints its address.

const [ringPath = '', keyPath = '', ringName = ''] = process.argv.slice(2);
/** How each token of a round is used; most tokens are unsealed. */
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
// The exporter's server keeps the process alive, not the ring's timers: it ends with its parent.
process.stdin.on('end', () => process.exit()).resume();

for (let round = 0; ; round++) {
  const token = String(Reflect.get(Object(await ask(codec, undefined)), 'requestState'));
  const what = ROUND[round % ROUND.length];
  if (what === 'open') await ask(codec, token);
  if (what === 'changed') await ask(codec, `${token.slice(0, -8)}AAAAAAAA`);
  if (what === 'made up') await ask(codec, 'nonsense');
  if (what === 'other tool') await ask(codec, token, 'another tool');
  // A load that goes up and down, so that the graphs show a change.
  await new Promise((resolve) => setTimeout(resolve, 20 + 15 * Math.sin(Date.now() / 4_000)));
}
