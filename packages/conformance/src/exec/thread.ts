import { workerData } from 'node:worker_threads';
import { type Order, type Outcome, Program, type ThreadData } from './program.ts';

// Runs in a thread of its own, while the main thread sleeps until the bell rings.
const { program: options, port, bell }: ThreadData = workerData;
let program: Program | undefined;

port.on('message', (order: Order) => void carryOut(order));

async function carryOut(order: Order): Promise<void> {
  const outcome = await obey(order).catch((error: unknown): Outcome => {
    return { failure: `the program could not be started: ${error instanceof Error ? error.name : typeof error}` };
  });
  port.postMessage(outcome);
  Atomics.store(bell, 0, 1);
  Atomics.notify(bell, 0);
}

async function obey(order: Order): Promise<Outcome> {
  if (order.do === 'ask') {
    program ??= new Program(options);
    return orGone(await program.ask(order.line, order.shown));
  }
  if (program === undefined) return {};
  if (order.do === 'look') return orGone(program.look());
  await (order.do === 'end' ? program.end() : program.kill());
  program = undefined;
  return {};
}

/** After a failure the program is gone: the next request starts a new one. */
async function orGone(outcome: Outcome): Promise<Outcome> {
  if (outcome.failure !== undefined) {
    await program?.kill();
    program = undefined;
  }
  return outcome;
}
