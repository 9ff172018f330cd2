/** A member of a value's own, undefined where it has none: what `__proto__` brings in counts for nothing. */
export function ownMember(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return Reflect.get(value, key);
}
