/** Shows a wrong value in an error message: its type, and the value itself where it cannot be a secret. */
export function show(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'undefined') return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** @throws {TypeError} unless `options` is an object whose every key is in `known`. */
export function knownOptions(owner: string, options: unknown, known: readonly string[]): Record<string, unknown> {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${owner}: options must be an object, got ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new TypeError(`${owner}: unknown option ${JSON.stringify(key)}; known are ${known.join(', ')}`);
    }
  }
  return { ...options };
}

/** Whether `value` is an object on which every one of `methods` is a function. */
export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  // A server is made for each request: no closure.
  for (const method of methods) if (typeof Reflect.get(value, method) !== 'function') return false;
  return true;
}

/** @throws {TypeError} for a non-number, {@link RangeError} for NaN, an infinity, or a value outside [min, max]. */
export function boundedNumber(owner: string, name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') throw new TypeError(`${owner}: ${name} must be a number, got ${show(value)}`);
  if (!(value >= min && value <= max)) {
    throw new RangeError(`${owner}: ${name} must be from ${min} to ${max}, got ${value}`);
  }
  return value;
}

/** @throws {TypeError} for anything but a boolean or undefined, which counts as `fallback`. */
export function flag(owner: string, name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') throw new TypeError(`${owner}: ${name} must be a boolean, got ${show(value)}`);
  return value;
}

/**
 * Reads one of several texts; undefined counts as the first.
 * @throws {TypeError} for a non-string, {@link RangeError} for one outside `choices`.
 */
export function oneOf<T extends string>(owner: string, name: string, value: unknown, choices: readonly [T, ...T[]]): T {
  if (value === undefined) return choices[0];
  if (typeof value !== 'string') throw new TypeError(`${owner}: ${name} must be a string, got ${show(value)}`);
  const found = choices.find((choice) => choice === value);
  if (found === undefined) {
    throw new RangeError(
      `${owner}: ${name} must be one of ${choices.join(', ')}, got ${JSON.stringify(value.slice(0, 120))}`,
    );
  }
  return found;
}
