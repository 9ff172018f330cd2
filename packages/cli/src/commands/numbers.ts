import { InvalidArgumentError } from 'commander';

/** Reads an option that is a number, and says which it may be. */
export function numberIn(least: number, most: number, what = 'number'): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const isWhole = what !== 'whole number' || Number.isInteger(value);
    if (/^\d+(?:\.\d+)?$/.test(text) && value >= least && value <= most && isWhole) return value;
    throw new InvalidArgumentError(`It must be a ${what} from ${least} to ${most}.`);
  };
}
