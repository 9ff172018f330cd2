import { member } from './member.ts';
import type { Target } from './server.ts';

/**
 * Copies of the call, one for each value in its arguments, with that value replaced; undefined for a value that cannot
 * be changed.
 */
export function otherParams({ method, params }: Target): readonly (Target | undefined)[] {
  const args = member(params, 'arguments');
  if (Object.keys(Object(args)).length === 0) return [];
  return othersOf(args).map((other) =>
    other === undefined ? undefined : { method, params: { ...params, arguments: other } },
  );
}

/** Copies of the value, one for each part, with that part replaced; undefined for a part that cannot be changed. */
function othersOf(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [`${value}1`];
  if (typeof value === 'number') return [value + 1];
  if (typeof value === 'boolean') return [!value];
  const entries = Object.entries(Object(value));
  if (entries.length === 0) return [undefined];
  return entries.flatMap(([name, part]) =>
    othersOf(part).map((other) => {
      if (other === undefined) return undefined;
      if (Array.isArray(value)) return value.with(Number(name), other);
      return { ...Object.fromEntries(entries), [name]: other };
    }),
  );
}
