import { InvalidArgumentError } from 'commander';

/** Reads an option that is a number within bounds. */
export function numberFrom(min: number, max: number, kind: 'number' | 'whole number' = 'number') {
  return (text: string): number => {
    const value = Number(text);
    const isRight =
      text.trim() !== '' && value >= min && value <= max && (kind === 'number' || Number.isInteger(value));
    if (isRight) return value;
    throw new InvalidArgumentError(`It must be a ${kind} from ${min} to ${max}.`);
  };
}
