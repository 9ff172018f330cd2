import { workerData } from 'node:worker_threads';
import { type Order, type Outcome, type Post, Program, type ThreadData } from './program.ts';

// Runs in a separate thread, since the main thread may block until an answer arrives.
const { program: options, port, bell }: ThreadData = workerData;
let program: Program | undefined;

port.on('message', ({ number, order }: { readonly number: number; readonly order: Order }) => {
  void carryOut(number, order);
});

async function carryOut(number: number, order: Order): Promise<void> {
  const outcome = await obey(order).catch((error: unknown): Outcome => {
    return { failure: `the program could not be started: ${error instanceof Error ? error.name : typeof error}` };
  });
  post({ number, outcome });
}

function post(what: Post): void {
  port.postMessage(what);
  Atomics.add(bell, 0, 1);
  Atomics.notify(bell, 0);
}

async function obey(order: Order): Promise<Outcome> {
  if (order.do === 'ask') {
    program ??= new Program(options, (changed) => post({ changed }));
    return orGone(program, await program.ask(order.id, order.line, order.shown));
  }
  const running = program;
  if (running === undefined) return {};
  if (order.do === 'tell') return running.tell(order.line);
  if (order.do === 'look') return orGone(running, running.look());
  await (order.do === 'end' ? running.end() : running.kill());
  forget(running);
  return {};
}

/** Ends the program after a failure; the next request starts it again. */
async function orGone(asked: Program, outcome: Outcome): Promise<Outcome> {
  if (outcome.failure !== undefined) {
    await asked.kill();
    forget(asked);
  }
  return outcome;
}

function forget(gone: Program): void {
  if (program === gone) program = undefined;
}
