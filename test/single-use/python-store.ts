import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SingleUseStore } from '@sealring/core';

const PROGRAM = fileURLToPath(new URL('store.py', import.meta.url));

/** Maps an error by its name: a ValueError there is a RangeError here. */
function errorOf(text: string): Error {
  const name = (text.split(':')[0] ?? '').replace('ValueError', 'RangeError');
  // The text has the format of its class: "SingleUseStoreError: single-use store unavailable: ...".
  const [, kind] = /^SingleUseStoreError: single-use store ([a-z-]+):/.exec(text) ?? [];
  return Object.assign(new Error(text), { name, ...(kind !== undefined && { kind }) });
}

interface Waiting {
  resolve(won: boolean): void;
  reject(error: Error): void;
}

/** A process with single-use stores of the Python package. */
export class PythonStores {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #requests = 0;
  #stores = 0;

  constructor(python: string, store: 'memory' | 'redis' | 'postgres' | 'dynamodb', address: string) {
    this.#process = spawn(python, [PROGRAM, store, address], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#process.stdout === null) throw new Error('no output');
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const { id, value, error }: { id: number; value?: boolean; error?: string } = JSON.parse(line);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (value === undefined) waiting?.reject(errorOf(error ?? ''));
      else waiting?.resolve(value);
    });
  }

  /** A store on its own connections. */
  open(): SingleUseStore {
    this.#stores += 1;
    const store = this.#stores;
    return {
      claim: (claim, expiresAt) =>
        new Promise((resolve, reject) => {
          this.#requests += 1;
          this.#waiting.set(this.#requests, { resolve, reject });
          const request = { id: this.#requests, store, claim, expiresAtMs: expiresAt.getTime() };
          this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
        }),
    };
  }

  async close(): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await exited;
  }
}
