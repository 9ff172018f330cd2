import type { Round } from './history.ts';
import { type Html, html } from './html.ts';
import { rate } from './words.ts';

const WIDTH = 300;
const HEIGHT = 72;
/** With fewer rounds, the curve does not fill the whole width. */
const LEAST_STEPS = 20;

/** Tokens per second over the recent rounds, the newest on the right. */
export function rateChart(title: string, name: string, rounds: readonly Round[], of: (round: Round) => number): Html {
  const rates = rounds.map((round) => of(round) / round.seconds);
  const most = Math.max(...rates, 0);
  const now = rates.at(-1) ?? 0;
  const points = rates.map((value, index) => {
    const x = WIDTH - ((rates.length - 1 - index) / Math.max(rates.length - 1, LEAST_STEPS)) * WIDTH;
    const y = HEIGHT - 2 - (most === 0 ? 0 : (value / most) * (HEIGHT - 10));
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const [first = '', last = ''] = [points[0], points.at(-1)];
  const area = `${first.split(',')[0]},${HEIGHT} ${points.join(' ')} ${last.split(',')[0]},${HEIGHT}`;
  return html`<figure class="rate ${name}"><figcaption><span>${title}</span><b>${rate(now)}<small>/s</small></b></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}: ${rate(now)} per second">
${points.length < 2 ? html`` : html`<polygon points="${area}"/><polyline points="${points.join(' ')}"/>`}</svg>
<small class="quiet">peak ${rate(most)}/s</small></figure>`;
}
