import { types } from 'node:util';
import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { type Check, expectThat } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { shareKeyStream } from './key-stream.ts';
import { CONTEXT, type KeyWrapperTrial, kindOf } from './trial.ts';

/** What a ring document takes as a provider, and as the id of a KMS key. */
const PROVIDER = /^[a-z0-9-]{1,64}$/;
const LONGEST_KEY_ID = 2_048;
/** 256 KiB for 64 keys, less what else is in an entry. */
const LARGEST_RECORD = 3_500;
const DAY_MS = 24 * 60 * 60 * 1_000;

/** What is known of a key wrapper and of its wrapped keys, and what becomes of them in a ring. */
export const RECORD_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-FACTS',
    async run(trial) {
      const keyWrapper = await trial.create();
      const before = factsOf(keyWrapper);
      await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      expectThat(factsOf(keyWrapper) === before, 'provider, keyId or supports changed with a call');
    },
  },
  {
    id: 'WRAP-RECORD',
    async run(trial) {
      const keyWrapper = await trial.create();
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      expectThat(made.provider === keyWrapper.provider, 'a wrapped key names another provider than its key wrapper');
      checkKeyId(made.keyId, 'the keyId of a wrapped key');
      expectThat(made.wrapped.length > 0, 'a wrapped key has no bytes');
    },
  },
  {
    id: 'WRAP-RECORD-SIZE',
    async run(trial) {
      const keyWrapper = await trial.create();
      const { length } = textOf(await trial.wrap(keyWrapper, trial.dataKey(keyWrapper)));
      expectThat(
        length <= LARGEST_RECORD,
        `a stored wrapped key has ${length} characters, more than ${LARGEST_RECORD}`,
      );
    },
  },
  {
    id: 'WRAP-CONFIDENTIAL',
    async run(trial) {
      const wraps: (readonly [WrappedKey, Uint8Array])[] = [];
      // Two processes: what each of them counts from one.
      for (const keyWrapper of [await trial.create(), await trial.create()]) {
        for (let i = 0; i < 2; i++) {
          const dataKey = trial.dataKey(keyWrapper);
          wraps.push([await trial.wrap(keyWrapper, dataKey), dataKey]);
        }
        if (keyWrapper.generate === undefined) continue;
        const { wrapped, dataKey } = await trial.generate(keyWrapper);
        wraps.push([wrapped, Uint8Array.from(dataKey)]);
      }
      for (const [i, [made, dataKey]] of wraps.entries()) {
        expectThat(
          !shows(contentsOf(made), dataKey),
          'a wrapped key holds the data key, or a piece of it, in the clear',
        );
        for (const [other, otherKey] of wraps.slice(0, i)) {
          expectThat(
            !shareKeyStream(made.wrapped, dataKey, other.wrapped, otherKey),
            'two wrapped keys hide their data keys with one key stream: the XOR of the two is that of the data keys',
          );
        }
      }
    },
  },
  {
    id: 'WRAP-STORED',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const stored = textOf(await trial.wrap(keyWrapper, dataKey));
      await trial.expectOpens(keyWrapper, fromText(stored), dataKey, 'its wrapped key, stored as text and read again,');
    },
  },
  {
    id: 'WRAP-PEER',
    async run(trial) {
      const [keyWrapper, peer] = [await trial.create(), await trial.create()];
      const dataKey = trial.dataKey(keyWrapper);
      await trial.expectOpens(peer, await trial.wrap(keyWrapper, dataKey), dataKey, 'another instance’s wrapped key');
      const back = trial.dataKey(peer);
      await trial.expectOpens(keyWrapper, await trial.wrap(peer, back), back, 'another instance’s wrapped key');
    },
  },
  {
    id: 'WRAP-OPTIONS',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const told: unknown[] = [];
      const options = {
        signal: new AbortController().signal,
        onServiceDate: (date: unknown) => void told.push(date),
      };
      const made = await trial.wrap(keyWrapper, dataKey, options);
      await trial.expectOpens(keyWrapper, made, dataKey, undefined, options);
      if (keyWrapper.generate !== undefined) {
        await trial.answer(() => keyWrapper.generate?.({ context: CONTEXT, ...options }), 'generate');
      }
      for (const date of told) {
        expectThat(types.isDate(date), `onServiceDate was told ${kindOf(date)}, not a date`);
        expectThat(!Number.isNaN(date.getTime()), 'onServiceDate was told an invalid date');
        // No clock is a day wrong: this is for seconds taken as milliseconds.
        const isOfToday = Math.abs(date.getTime() - Date.now()) < DAY_MS;
        expectThat(isOfToday, `onServiceDate was told ${date.toISOString()}`);
      }
    },
  },
];

function factsOf({ provider, keyId, supports }: KeyWrapper): string {
  expectThat(
    typeof provider === 'string' && PROVIDER.test(provider),
    'provider is not 1 to 64 characters of a-z, 0-9 and the hyphen',
  );
  checkKeyId(keyId, 'keyId');
  for (const name of ['context', 'authenticated'] as const) {
    expectThat(typeof supports[name] === 'boolean', `supports.${name} is ${kindOf(supports[name])}, not true or false`);
  }
  const { keyVersions } = supports;
  expectThat(
    keyVersions === undefined || typeof keyVersions === 'boolean',
    `supports.keyVersions is ${kindOf(keyVersions)}, not true or false`,
  );
  return JSON.stringify([provider, keyId, supports.context, supports.authenticated, keyVersions]);
}

function checkKeyId(keyId: unknown, what: string): void {
  expectThat(typeof keyId === 'string', `${what} is ${kindOf(keyId)}, not text`);
  expectThat(keyId !== '', `${what} is empty`);
  expectThat(keyId.length <= LONGEST_KEY_ID, `${what} has ${keyId.length} characters, more than ${LONGEST_KEY_ID}`);
  expectThat(keyId.isWellFormed(), `${what} has half a surrogate pair, which no stored text keeps`);
}

/** What a ring keeps of a wrapped key. */
function textOf({ provider, keyId, wrapped, signature }: WrappedKey): string {
  return JSON.stringify({
    provider,
    keyId,
    wrapped: Buffer.from(wrapped).toString('base64url'),
    ...(signature !== undefined && { signature: Buffer.from(signature).toString('base64url') }),
  });
}

function fromText(text: string): WrappedKey {
  const { wrapped, signature, ...rest } = JSON.parse(text) as Record<keyof WrappedKey, string>;
  return {
    ...rest,
    wrapped: Buffer.from(wrapped, 'base64url'),
    ...(signature !== undefined && { signature: Buffer.from(signature, 'base64url') }),
  };
}
