import { UsageError } from '../usage-error.ts';

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable; undefined if it is unset or empty. */
export function optional(environment: Environment, name: string): string | undefined {
  const value = environment[name];
  return value === '' ? undefined : value;
}

/** @throws {UsageError} if the variable is unset or empty. */
export function required(environment: Environment, name: string): string {
  const value = optional(environment, name);
  if (value === undefined) throw new UsageError(`${name} is not set`);
  return value;
}

/** @throws {UsageError} unless the variable is `true`, `false`, unset or empty. Unset and empty mean false. */
export function flag(environment: Environment, name: string): boolean {
  const value = optional(environment, name) ?? 'false';
  if (value !== 'true' && value !== 'false') throw new UsageError(`${name} must be true or false, got "${value}"`);
  return value === 'true';
}
