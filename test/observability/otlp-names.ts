/** A metric in OpenTelemetry. */
export interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly kind: 'counter' | 'gauge' | 'histogram' | 'up-down counter';
}

/** The units of Sealring's metrics, and of the metrics that are shown beside them, by their words in Prometheus. */
const UNIT_WORDS: Readonly<Record<string, string>> = {
  d: 'days',
  h: 'hours',
  min: 'minutes',
  s: 'seconds',
  ms: 'milliseconds',
  By: 'bytes',
  '%': 'percent',
  '1': '',
};

/** The name in OpenTelemetry's own exporter for Prometheus: no unit, and `_total` for a counter. */
function exporterName({ name, kind }: Instrument): string {
  const words = wordsOf(name).filter((word) => kind !== 'counter' || word !== 'total');
  return [...words, ...(kind === 'counter' ? ['total'] : [])].join('_');
}

/**
 * The name that a collector, or Prometheus at its OTLP endpoint, makes by default (strategy
 * `UnderscoreEscapingWithSuffixes`), by the rules of github.com/prometheus/otlptranslator: the word of the unit, unless the
 * name has it; `_total` for a counter; `_ratio` for a gauge of the unit `1`. A unit in braces is a comment.
 */
export function otlpName({ name, unit, kind }: Instrument): string {
  const words = wordsOf(name);
  const word = unit.includes('{') ? '' : (UNIT_WORDS[unit] ?? unknownUnit(unit));
  if (word !== '' && !words.includes(word)) words.push(word);
  const suffix = kind === 'counter' ? 'total' : kind === 'gauge' && unit === '1' ? 'ratio' : undefined;
  return suffix === undefined ? words.join('_') : [...words.filter((one) => one !== suffix), suffix].join('_');
}

/** The same text with the names of a collector. Samples of a histogram end with `_bucket`, `_sum` or `_count`. */
export function withOtlpNames(text: string, instruments: readonly Instrument[]): string {
  const renamed = new Map(instruments.map((one) => [exporterName(one), otlpName(one)]));
  return text.replaceAll(/\bsealring_[a-z_]+/g, (sample) => {
    const [, stem = sample, part = ''] = /^(.*?)(_bucket|_sum|_count)?$/.exec(sample) ?? [];
    return renamed.get(sample) ?? (renamed.has(stem) ? `${renamed.get(stem)}${part}` : sample);
  });
}

function wordsOf(name: string): string[] {
  return name.split(/[^A-Za-z0-9:]+/).filter((word) => word !== '');
}

function unknownUnit(unit: string): never {
  throw new Error(`the unit ${unit} has no word in Prometheus here`);
}
