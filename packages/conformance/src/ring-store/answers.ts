import { inspect } from 'node:util';
import { type Check, expectThat } from '../requirement.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import { isObject, kindOf, nameOf, type RingStoreTrial } from './trial.ts';

/** What a store is made of, and what its calls answer with. */
export const ANSWER_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-SHAPE',
    async run(trial) {
      const store = await trial.open();
      expectThat(typeof store.kind === 'string' && store.kind !== '', `kind is ${kindOf(store.kind)}, no name`);
      for (const name of ['watch', 'close'] as const) {
        const member: unknown = store[name];
        expectThat(member === undefined || typeof member === 'function', `${name} is ${kindOf(member)}, no function`);
      }
    },
  },
  {
    id: 'RING-ASYNCHRONOUS',
    async run(trial) {
      const store = await trial.open();
      const signal = AbortSignal.abort();
      await trial.outcome(() => store.read(), 'a read');
      await trial.outcome(() => store.read({ signal }), 'an aborted read');
      await trial.outcome(() => store.write('x', { expected: undefined }), 'a write');
      await trial.outcome(() => store.write('x', { expected: undefined }), 'a write that conflicts');
      await trial.outcome(() => store.write('x', { expected: undefined, signal }), 'an aborted write');
      await trial.outcome(
        () => store.write('x'.repeat(MAX_DOCUMENT_BYTES + 1), { expected: undefined }),
        'a write that is too large',
      );
    },
  },
  {
    id: 'RING-RESULT',
    async run(trial) {
      const store = await trial.open();
      await trial.read(store, 'a read of an absent ring');
      const revision = await trial.write(store, 'one', undefined, 'a foundation');
      await trial.read(store, 'a read');
      await trial.write(store, 'two', revision, 'a write');
    },
  },
  {
    id: 'RING-OWN-RESULT',
    async run(trial) {
      const store = await trial.open();
      const revision = await trial.write(store, 'one', undefined);
      const found: unknown = await store.read();
      // What cannot be changed is as good.
      if (isObject(found)) for (const name of ['document', 'revision']) Reflect.set(found, name, 'changed');
      await trial.expectStored(store, 'one', revision, 'a read after the result of another one was changed');
    },
  },
  {
    id: 'RING-ERROR-TEXT',
    async run(trial) {
      const store = await trial.open();
      const canary = Buffer.from(trial.random.bytes(12)).toString('hex');
      const most = trial.subject.supports.maxDocumentBytes;
      const revision = await trial.write(store, `${canary} one`, undefined);
      const calls = {
        'a conflict': () => store.write(`${canary} two`, { expected: undefined }),
        'a write that is too large': () =>
          store.write(canary.repeat(Math.ceil((most + 1) / canary.length)), { expected: revision }),
        'an aborted write': () => store.write(`${canary} two`, { expected: revision, signal: AbortSignal.abort() }),
        'an aborted read': () => store.read({ signal: AbortSignal.abort() }),
      };
      for (const [what, call] of Object.entries(calls)) {
        const outcome = await trial.outcome(call, what);
        if (outcome.status === 'resolved') continue;
        const { error } = outcome;
        expectThat(!everythingOf(error).includes(canary), `the error of ${what}, ${nameOf(error)}, shows the document`);
        const cause: unknown = isObject(error) ? error['cause'] : undefined;
        expectThat(cause === undefined, `the error of ${what}, ${nameOf(error)}, has a cause: ${kindOf(cause)}`);
      }
    },
  },
];

function everythingOf(error: unknown): string {
  const shown = inspect(error, { showHidden: true, depth: 6, maxStringLength: 1_000_000 });
  return error instanceof Error ? `${shown}\n${error.message}\n${error.stack ?? ''}` : shown;
}
