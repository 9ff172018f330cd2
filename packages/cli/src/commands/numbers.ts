import { InvalidArgumentError } from 'commander';

/** Parses an option that is a number within limits. */
export function numberIn(min: number, max: number, what = 'number'): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const isWhole = what !== 'whole number' || Number.isInteger(value);
    if (/^\d+(?:\.\d+)?$/.test(text) && value >= min && value <= max && isWhole) return value;
    throw new InvalidArgumentError(`It must be a ${what} from ${min} to ${max}.`);
  };
}
