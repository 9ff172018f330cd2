import type { RequestStateCodec } from '@sealring/core';
import { type Check, expectThat } from '../requirement.ts';
import { text } from './payloads.ts';
import type { CodecTrial } from './trial.ts';

/** What a seal, an unseal and a refusal leave behind in the process. */
export const PURITY_CHECKS: readonly Check<CodecTrial>[] = [
  {
    id: 'CODEC-QUIET',
    async run(trial) {
      const codec = await trial.create();
      const printed = watchOutput(() => useOnce(trial, codec));
      expectThat(printed === '', `something was printed: ${printed.length} characters`);
    },
  },
  {
    id: 'CODEC-NO-TIMERS',
    async run(trial) {
      const codec = await trial.create();
      const before = resources();
      useOnce(trial, codec);
      const left = leftOver(before, resources());
      expectThat(left.length === 0, `left behind: ${left.join(', ')}`);
    },
  },
  {
    id: 'CODEC-NO-GLOBALS',
    async run(trial) {
      const codec = await trial.create();
      const before = globals();
      useOnce(trial, codec);
      const after = globals();
      const changed = [...after].filter(([name, value]) => !before.has(name) || !Object.is(before.get(name), value));
      expectThat(changed.length === 0, `globals changed: ${changed.map(([name]) => String(name)).join(', ')}`);
      for (const prototype of [Object.prototype, Array.prototype, String.prototype, Uint8Array.prototype]) {
        expectThat(Object.keys(prototype).length === 0, 'a built-in prototype was given a member');
      }
    },
  },
];

function useOnce(trial: CodecTrial, codec: RequestStateCodec): void {
  const token = trial.seal(codec, text('state'));
  trial.unseal(codec, token);
  trial.refusal(codec, `${token}A`, 'a token with a character more');
}

/** What `run` prints. A console may have a stream of its own, as under a test runner: it is watched, too. */
function watchOutput(run: () => void): string {
  let printed = '';
  const note = (...words: unknown[]): true => {
    printed += words.map(String).join(' ');
    return true;
  };
  const watched = [
    watch(process.stdout, ['write'], note),
    watch(process.stderr, ['write'], note),
    watch(console, ['log', 'info', 'warn', 'error', 'debug'], note),
  ];
  try {
    run();
  } finally {
    for (const restore of watched) restore();
  }
  return printed;
}

/** Puts `note` in place of some methods; returns what puts them back. */
function watch(holder: object, names: readonly string[], note: (...words: unknown[]) => true): () => void {
  const own = names.map((name) => Object.getOwnPropertyDescriptor(holder, name));
  for (const name of names) Object.defineProperty(holder, name, { value: note, configurable: true, writable: true });
  return () => {
    for (const [i, name] of names.entries()) {
      const descriptor = own[i];
      if (descriptor === undefined) Reflect.deleteProperty(holder, name);
      else Object.defineProperty(holder, name, descriptor);
    }
  };
}

function resources(): readonly string[] {
  return process.getActiveResourcesInfo();
}

function leftOver(before: readonly string[], after: readonly string[]): readonly string[] {
  const rest = [...before];
  return after.filter((resource) => {
    const at = rest.indexOf(resource);
    if (at < 0) return true;
    rest.splice(at, 1);
    return false;
  });
}

function globals(): Map<PropertyKey, unknown> {
  const seen = new Map<PropertyKey, unknown>();
  for (const name of Reflect.ownKeys(globalThis)) {
    // Node's own fetch, which makes itself ready when it likes.
    if (String(name).startsWith('Symbol(undici.')) continue;
    const { value } = Object.getOwnPropertyDescriptor(globalThis, name) ?? {};
    seen.set(name, value);
  }
  return seen;
}
