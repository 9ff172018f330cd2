/** A time in UTC, in whole seconds: `2026-11-21 03:00:00`. */
export function instant(date: Date): string {
  return date.toISOString().slice(0, 19).replace('T', ' ');
}

/** A duration with at most two units: `3 h 12 min`, `45 s`. */
export function span(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return s % 60 === 0 || minutes >= 10 ? `${minutes} min` : `${minutes} min ${s % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`;
}

/** A rate, rounded to two significant digits, or to a whole number if it is 100 or more. */
export function rate(perSecond: number): string {
  return perSecond >= 100 ? perSecond.toFixed(0) : String(Number(perSecond.toPrecision(2)));
}
