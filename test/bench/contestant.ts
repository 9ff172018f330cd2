import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { payloadOf } from './payload.ts';
import type { Turn, TurnResult } from './worker.ts';

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** A contender's process. It works only during its turns. */
export class Contestant {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  private constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#child.stdout === null) throw new Error('no output');
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  static onNode(name: string): Contestant {
    return new Contestant(name, process.execPath, ['--expose-gc', pathOf('worker.ts'), name]);
  }

  static onPython(name: string, python: string): Contestant {
    return new Contestant(name, python, [pathOf('worker.py')]);
  }

  async take(turn: Turn): Promise<TurnResult> {
    this.#child.stdin?.write(`${JSON.stringify({ ...turn, payload: payloadOf(turn.bytes).text })}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`${this.name} ended in the middle of a turn`);
    return JSON.parse(value);
  }

  stop(): void {
    this.#child.stdin?.end();
  }
}
