import { parser } from '@prometheus-io/lezer-promql';

/** The series that a query selects. */
export interface Query {
  /** Texts that the grammar does not allow; empty for a valid query. */
  readonly errors: readonly string[];
  readonly metrics: readonly string[];
  /** Labels of matchers and of `by`, with the metrics of the whole query. */
  readonly labels: readonly string[];
}

/** Reads a query with Prometheus's own grammar, the one of its web interface. */
export function readPromql(text: string): Query {
  const errors: string[] = [];
  const metrics: string[] = [];
  const labels: string[] = [];
  parser.parse(text).iterate({
    enter(node) {
      const own = text.slice(node.from, node.to);
      if (node.type.isError) errors.push(`${node.from}: ${own}`);
      else if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') metrics.push(own);
      else if (node.name === 'LabelName') labels.push(own);
    },
  });
  return { errors, metrics, labels };
}
