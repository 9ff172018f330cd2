import { member } from './member.ts';
import type { Target } from './server.ts';

/** The same call, once for each argument that can be changed, with another value of it. */
export function otherParams({ method, params }: Target): readonly Target[] {
  const entries = Object.entries(Object(member(params, 'arguments')));
  return entries.flatMap(([name, value]) => {
    const other = otherValue(value);
    if (other === undefined) return [];
    return [{ method, params: { ...params, arguments: { ...Object.fromEntries(entries), [name]: other } } }];
  });
}

function otherValue(value: unknown): unknown {
  if (typeof value === 'string') return `${value}1`;
  if (typeof value === 'number') return value + 1;
  return typeof value === 'boolean' ? !value : undefined;
}
