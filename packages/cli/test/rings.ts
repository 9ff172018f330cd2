import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashedKeyId } from '@sealring/core';
import { type Ended, newProject, runCli } from './cli-process.ts';

const CONFIG = 'sealring.config.mjs';
const RING = 'sealring.local.ring';

/** The JSON that a command prints. */
type Printed = ReturnType<typeof JSON.parse>;

/** A key in a ring document. */
export interface StoredKey {
  readonly id: string;
  readonly revoked?: object;
  readonly wraps: readonly { readonly wrapped: string }[];
}

/** A project with a local ring, which tests change in ways that no command offers. */
export class RingProject implements Disposable {
  readonly #project = newProject();
  readonly cwd: string = this.#project.cwd;

  run(args: readonly string[]): Promise<Ended> {
    return runCli(args, { cwd: this.cwd });
  }

  /** Runs a command with `--json`, and parses its output. */
  async json(args: readonly string[]): Promise<{ readonly code: number | null; readonly printed: Printed }> {
    const { code, stdout } = await this.run([args[0] ?? '', '--json', ...args.slice(1)]);
    return { code, printed: JSON.parse(stdout) };
  }

  at(name: string): string {
    return join(this.cwd, name);
  }

  /** The stored document. */
  get text(): string {
    return readFileSync(this.at(RING), 'utf8');
  }

  get keys(): readonly StoredKey[] {
    return JSON.parse(this.text).keys;
  }

  /** The names of the stored keys, in the order of the document. */
  get names(): readonly string[] {
    return this.keys.map(({ id }) => hashedKeyId(id));
  }

  /** Writes another configuration of the same ring: `edit` changes the text of the first one. */
  configure(file: string, edit: (text: string) => string): void {
    writeFileSync(this.at(file), edit(readFileSync(this.at(CONFIG), 'utf8')));
  }

  /** Adds options to the configuration, or writes another one with them. */
  add(options: string, file = CONFIG): void {
    this.configure(file, (text) => text.replace("ringName: 'local',", `ringName: 'local', ${options}`));
  }

  /** Creates the ring again, dated this many hours ago. */
  async age(hours: number): Promise<void> {
    rmSync(this.at(RING));
    const wallMs = `() => Date.now() - ${hours * 3_600_000}`;
    this.add(`clock: { wallMs: ${wallMs}, monotonicNs: () => process.hrtime.bigint() },`, 'past.config.mjs');
    await this.run(['init', '--config', 'past.config.mjs']);
  }

  /** Publishes a key that only another KMS key wraps, which the first configuration does not have. */
  async rotateWithAnotherKmsKey(): Promise<void> {
    const masterKey = randomBytes(32).toString('base64url');
    this.configure('newer.config.mjs', (text) =>
      text.replace(/masterKey: (.*) \}\)/, `masterKey: '${masterKey}', alsoUnwrap: [$1] })`),
    );
    await this.run(['rotate', '--config', 'newer.config.mjs']);
  }

  /** Revokes every key while the KMS wraps no successor. */
  async revokeWithoutSuccessor(): Promise<void> {
    this.configure('readonly.config.mjs', (text) => {
      const refusing = `{ ...$1, generate: undefined, wrap: async () => {
    throw new KeyWrapperError('unavailable', { provider: 'local', operation: 'wrap' });
  } }`;
      const config = text.replace(/keyWrapper: (.*),/, `keyWrapper: ${refusing},`);
      return `import { KeyWrapperError } from '@sealring/core';\n${config}`;
    });
    await this.run(['revoke', '--all', '--yes', '--no-wait', '--config', 'readonly.config.mjs']);
  }

  /** Changes one character of the wrap of a stored key. */
  damage(index: number): void {
    const document = JSON.parse(this.text);
    const [wrap] = document.keys[index].wraps;
    wrap.wrapped = `${wrap.wrapped.startsWith('A') ? 'B' : 'A'}${wrap.wrapped.slice(1)}`;
    writeFileSync(this.at(RING), JSON.stringify(document));
  }

  [Symbol.dispose](): void {
    this.#project.remove();
  }
}

/** A project with a new local ring. */
export async function newRing(): Promise<RingProject> {
  const ring = new RingProject();
  await ring.run(['init', '--local']);
  return ring;
}
