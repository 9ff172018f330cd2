/** One sample in the text format of Prometheus. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** Maximum number of samples to read from one page. */
const MAX_SAMPLES = 5_000;
const MAX_LINE = 4_096;
const SAMPLE = /^(sealring_[a-z_]{1,100})(?:\{([^]*)\})? (\S{1,40})(?: \S+)?$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)/y;

/**
 * Reads Sealring's samples from a page in the text format of Prometheus, version 0.0.4. Lines that cannot be parsed are
 * skipped.
 */
export function readSamples(page: string): readonly Sample[] {
  const samples: Sample[] = [];
  for (const line of page.split('\n')) {
    if (line.length > MAX_LINE) continue;
    const sample = sampleOf(line);
    if (sample !== undefined) samples.push(sample);
    if (samples.length >= MAX_SAMPLES) break;
  }
  return samples;
}

function sampleOf(line: string): Sample | undefined {
  const [, name, labelText = '', valueText] = SAMPLE.exec(line) ?? [];
  const labels = labelsOf(labelText);
  const value = Number(valueText);
  // Larger numbers are dropped: their sums could be infinite, and the differences of such sums are not numbers.
  const isNumber = Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return name === undefined || labels === undefined || !isNumber ? undefined : { name, labels, value };
}

function labelsOf(text: string): ReadonlyMap<string, string> | undefined {
  const labels = new Map<string, string>();
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined || value === undefined) return undefined;
    labels.set(
      name,
      value.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char)),
    );
  }
  return labels;
}
