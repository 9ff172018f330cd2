import { readFileSync } from 'node:fs';
import type { Workspace } from './terraform.ts';

const FILES = ['facts', 'policies', 'refuses'].map((name) => `tests/${name}.tftest.hcl`);

/** One run of a module's own tests. */
interface Run {
  readonly file: string;
  readonly name: string;
  readonly status: string;
}

/** The results of a module's own tests. */
export interface OwnTests {
  /** The runs of the files, in the order of their names. */
  readonly runs: readonly Run[];
  readonly complaints: readonly string[];
}

/** A line of `terraform test -json`. */
interface Line {
  readonly test_run?: { path: string; run: string; progress: string; status: string };
  readonly diagnostic?: { summary: string; detail: string };
}

/**
 * Runs a module's own tests; `hear` gets every line, with everything that Terraform knows about the runs of policies.
 */
export async function runOwnTests(
  workspace: Workspace,
  module: string,
  hear: (line: unknown) => void,
): Promise<OwnTests> {
  const runs: Run[] = [];
  const complaints: string[] = [];
  // For the other files it would be 14 MB.
  for (const options of [
    ['-verbose', '-filter=tests/policies.tftest.hcl'],
    ['-filter=tests/refuses.tftest.hcl', '-filter=tests/facts.tftest.hcl'],
  ]) {
    const { stdout } = await workspace.run(module, 'test', '-json', ...options);
    for (const text of stdout.split('\n').filter((each) => each !== '')) {
      const line = JSON.parse(text) as Line;
      const { test_run: run, diagnostic } = line;
      if (run?.progress === 'complete') runs.push({ file: run.path, name: run.run, status: run.status });
      if (diagnostic !== undefined) complaints.push(`${diagnostic.summary}: ${diagnostic.detail}`);
      hear(line);
    }
  }
  return { runs: runs.toSorted((a, b) => a.file.localeCompare(b.file)), complaints };
}

/** The runs in a module's tests, as if each had passed. */
export function writtenRuns(folder: string): readonly Run[] {
  return FILES.flatMap((file) =>
    [...readFileSync(`${folder}${file}`, 'utf8').matchAll(/^run "(\w+)"/gm)].map(([, name = '']) => ({
      file,
      name,
      status: 'pass',
    })),
  );
}

/** The variables that a run of a module's tests expects to be refused. */
export function refusedVariables(folder: string): ReadonlySet<string> {
  const runs = readFileSync(`${folder}tests/refuses.tftest.hcl`, 'utf8');
  return new Set([...runs.matchAll(/expect_failures = \[var\.(\w+)\]/g)].map(([, name = '']) => name));
}
