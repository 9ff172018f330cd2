import { member } from './member.ts';
import type { Target } from './server.ts';

/** The same call with another value of one argument; undefined if it has no argument that can be changed. */
export function otherParams({ method, params }: Target): Target | undefined {
  const entries = Object.entries(Object(member(params, 'arguments')));
  for (const [name, value] of entries) {
    const other = otherValue(value);
    if (other !== undefined) {
      return { method, params: { ...params, arguments: { ...Object.fromEntries(entries), [name]: other } } };
    }
  }
  return undefined;
}

function otherValue(value: unknown): unknown {
  if (typeof value === 'string') return `${value}1`;
  if (typeof value === 'number') return value + 1;
  return typeof value === 'boolean' ? !value : undefined;
}
