import { jsonOf } from './json.ts';

/** Prints an event as one JSON object on its own line, with the time, for programs that collect logs. */
export function logJson(event: object): void {
  process.stdout.write(`${jsonOf({ time: new Date().toISOString(), ...event })}\n`);
}
