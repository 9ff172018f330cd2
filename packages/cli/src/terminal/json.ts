import { visibleLine } from './visible.ts';

/**
 * A value as JSON, with the invisible characters in its texts escaped, because they can come from anyone on the network.
 * `indent` is the number of spaces; without it, the JSON is one line.
 */
export function jsonOf(value: unknown, indent?: number): string {
  const lines = JSON.stringify(value, undefined, indent).split('\n');
  return lines.map(visibleLine).join('\n');
}
