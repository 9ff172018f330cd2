import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../support/python-venv.ts';

const guides = join(import.meta.dirname, '../../docs/guides');

/** A text of the guide, and its replacement in the test. The text must exist, or the guide has changed. */
export type Change = readonly [from: string, to: string];

/** The code of a migration guide, as the modules that a reader would make of it. */
export class Guide {
  readonly #text: string;
  // Inside the workspace, so that its packages resolve; ignored by git.
  readonly #folder: string;
  readonly #written = new Map<string, string>();

  constructor(name: string) {
    this.#text = readFileSync(join(guides, `${name}.md`), 'utf8');
    mkdirSync(cacheDirectory, { recursive: true });
    this.#folder = mkdtempSync(join(cacheDirectory, 'migration-'));
  }

  /**
   * Writes the only code block of that language in a section to a file of that name. A `declare const` after a
   * commented import becomes the import.
   * @returns the path.
   */
  module(section: string, file: string, changes: readonly Change[] = []): string {
    const path = join(this.#folder, file);
    let code = this.fence(section, file.endsWith('.py') ? 'python' : 'ts');
    for (const [from, to] of changes) {
      if (!code.includes(from)) throw new Error(`${section}: no ${JSON.stringify(from)}`);
      code = code.replaceAll(from, to);
    }
    code = code.replaceAll(/^\/\/ (import .*)\ndeclare const .*$/gm, '$1');
    // The file is never overwritten, because a server of another test may be reading it.
    if (this.#written.get(path) !== code) writeFileSync(path, code);
    this.#written.set(path, code);
    return path;
  }

  fence(section: string, language: string): string {
    const from = this.#text.indexOf(`\n## ${section}`);
    if (from < 0) throw new Error(`no section ${section}`);
    const next = this.#text.indexOf('\n## ', from + 1);
    const text = this.#text.slice(from, next < 0 ? undefined : next);
    const found = [...text.matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n(.*?)^\`\`\`$`, 'gms'))];
    const [fence] = found;
    if (fence === undefined || found.length !== 1)
      throw new Error(`${section}: ${found.length} code blocks of ${language}`);
    return fence[1] ?? '';
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
