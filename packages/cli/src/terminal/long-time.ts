/** A time in UTC, in whole seconds: `2027-01-05T22:20:00Z`. */
export function longTime(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
