import { merged } from './history.ts';
import { Html, html } from './html.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { rateChart } from './rate-chart.ts';
import { timelinePicture } from './timeline-picture.ts';
import type { View, ViewMember } from './view.ts';
import { instant, span } from './words.ts';

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='5' fill='none' stroke='%232f6fed' stroke-width='4'/%3E%3C/svg%3E";

/** The whole page. Only the style and the script with this `nonce` are applied. */
export function pageOf(view: View, nonce: string): string {
  return html`<!doctype html>
<html lang="en" data-every="${view.everySeconds}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sealring: ${view.ring}</title>
<link rel="icon" href="${new Html(ICON)}">
<style nonce="${nonce}">${new Html(PAGE_STYLE)}</style>
</head>
<body>
${mainOf(view)}
<script nonce="${nonce}">${new Html(PAGE_SCRIPT)}</script>
</body>
</html>
`.toString();
}

/** The main part of the page. */
export function mainPartOf(view: View): string {
  return html`<!doctype html>
<title>Sealring</title>
${mainOf(view)}
`.toString();
}

function mainOf(view: View): Html {
  const { ring, store, at, trouble, problems } = view;
  return html`<main>
<header><h1>Sealring <span class="quiet">/</span> ${ring}</h1>${pill(view)}<span class="quiet">${store} · ${instant(at)} UTC</span></header>
<p class="panel trouble offline">The server of this page does not answer: the data is out of date.</p>
${trouble === undefined ? html`` : html`<p class="panel trouble">The ring could not be read: ${trouble}. The data shown is from an earlier read.</p>`}
${problems.map(({ detail, remedy }) => html`<p class="panel trouble problem"><b>${sentence(detail)}</b> ${sentence(remedy)}</p>`)}
<section class="cards">${cards(view)}</section>
${rotationNote(view)}
<section class="panel"><h2>Keys</h2>${timelinePicture(view.keys, at)}${LEGEND}</section>
${ratesOf(view)}
${membersOf(view)}
</main>`;
}

/** Turns text that starts with a lower-case letter into a sentence: with a capital letter and a full stop. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}

const LEGEND = html`<ul class="legend">${[
  ['waits', 'propagating'],
  ['seals', 'seals'],
  ['reserve', 'could still seal without a rotation'],
  ['opens', 'verify-only'],
].map(
  ([name, words]) =>
    html`<li><svg viewBox="0 0 14 10"><rect class="part ${name}" width="14" height="10"/></svg>${words}</li>`,
)}</ul>`;

/** The worst status of any member. */
function pill({ members }: View): Html {
  if (members.length === 0) return html``;
  const worst = ['away', 'failing', 'degraded'].find((status) => members.some((member) => statusOf(member) === status));
  const status = worst ?? 'ok';
  return html`<span class="pill ${status}">${status === 'away' ? 'a member does not answer' : status}</span>`;
}

function statusOf({ health }: ViewMember): string {
  if (health === undefined) return 'away';
  return ['ok', 'degraded', 'failing'].includes(health.status) ? health.status : 'away';
}

function cards(view: View): readonly Html[] {
  const { at, keys, nextRotation, members } = view;
  const sealing = keys.find(({ seals }) => seals);
  const healthy = members.flatMap(({ health }) => health ?? []);
  const ready = healthy.filter((health) => health.ready).length;
  const remaining = Math.min(...healthy.map(({ sealRemaining }) => sealRemaining));
  return [
    sealing === undefined
      ? card('Seals now', 'no key', 'no key may seal')
      : card(
          'Seals now',
          html`<code>${sealing.hash}</code>`,
          `for ${span((+sealing.sealsUntil - +at) / 1_000)} at most`,
        ),
    nextRotation === undefined
      ? card('Next rotation', 'unknown', 'the ring has no key')
      : nextRotation > at
        ? card('Next rotation', `in ${span((+nextRotation - +at) / 1_000)}`, `${instant(nextRotation)} UTC`)
        : card('Next rotation', 'due', `since ${span((+at - +nextRotation) / 1_000)}`),
    members.length === 0
      ? card('Members', 'none configured', 'add them with --scrape')
      : card(
          'Members ready',
          `${ready} of ${members.length}`,
          healthy.length === members.length ? 'all answer' : `${members.length - healthy.length} do not answer`,
        ),
    healthy.length === 0
      ? card('Without KMS and store', 'unknown', 'how long sealing would continue')
      : card('Without KMS and store', span(remaining), 'sealing would continue for at least this long'),
  ];
}

function card(title: string, value: Html | string, detail: string): Html {
  return html`<div class="panel"><span>${title}</span><b>${value}</b><small>${detail}</small></div>`;
}

function rotationNote({ keys, at }: View): Html {
  const next = keys.filter(({ state }) => state === 'propagating');
  return html`${next.map(
    ({ hash, activates }) =>
      html`<p class="panel note"><b>A rotation is in progress.</b> <code>${hash}</code> was published, and becomes active in ${span((+activates - +at) / 1_000)}, at ${instant(activates)} UTC. By then, every member will have read it.</p>`,
  )}`;
}

function ratesOf({ members, rounds }: View): Html {
  if (members.length === 0) {
    return html`<section class="panel"><h2>Tokens</h2><p class="quiet">To show token rates and refusals, add the addresses where members export metrics: <code>--scrape http://127.0.0.1:9464/metrics</code></p></section>`;
  }
  const minutes = span(rounds.reduce((total, { seconds }) => total + seconds, 0));
  const boundary = merged(rounds.map(({ refused }) => refused));
  const codec = merged(rounds.map(({ rejected }) => rejected));
  const reasons = [...new Set([...boundary.keys(), ...codec.keys()])];
  const most = Math.max(...boundary.values(), ...codec.values(), 1);
  const countOf = (reason: string): number => Math.max(boundary.get(reason) ?? 0, codec.get(reason) ?? 0);
  return html`<section class="panel"><h2>Tokens per second</h2><div class="rates">
${rateChart('Sealed', 'sealed', rounds, ({ sealed }) => sealed)}
${rateChart('Unsealed', 'unsealed', rounds, ({ unsealed }) => unsealed)}
${rateChart('Refused', 'refused', rounds, ({ refused }) => [...refused.values()].reduce((a, b) => a + b, 0))}
</div></section>
<section class="panel rejects"><h2>Refused by reason, last ${minutes}</h2>${
    reasons.length === 0
      ? html`<p class="quiet">Nothing was refused.</p>`
      : html`<table><thead><tr><th>reason</th><th></th><th class="number">boundary</th><th class="number">codec</th></tr></thead><tbody>${reasons
          .toSorted((a, b) => countOf(b) - countOf(a))
          .map(
            (reason) =>
              html`<tr data-reason="${reason}"><td>${reason}</td><td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect width="${(countOf(reason) / most) * 100}" height="10"/></svg></td><td class="number">${boundary.get(reason) ?? 0}</td><td class="number">${codec.get(reason) ?? 0}</td></tr>`,
          )}</tbody></table>`
  }</section>`;
}

function membersOf({ members, keys }: View): Html {
  if (members.length === 0) return html``;
  const keyOf = (fingerprint: number): Html => {
    if (fingerprint === 0) return html`none`;
    const key = keys.find((each) => each.fingerprint === fingerprint);
    return key === undefined ? html`<span class="failing">another key</span>` : html`<code>${key.hash}</code>`;
  };
  return html`<section class="panel members"><h2>Members</h2><table><thead><tr><th>member</th><th>status</th><th>seals with</th><th>unseals</th><th class="number">last KMS check</th><th class="number">seals without KMS and store</th></tr></thead><tbody>${members.map(
    (member) => {
      const { name, health, failure } = member;
      const status = statusOf(member);
      return health === undefined
        ? html`<tr><td>${name}</td><td class="away" data-label="status" colspan="5">${failure ?? 'exports no metrics of this ring'}</td></tr>`
        : html`<tr><td>${name}</td><td class="${status}" data-label="status">${status}${health.ready ? '' : ', not ready'}${health.problems.length === 0 ? '' : `: ${health.problems.join(', ')}`}</td><td data-label="seals with">${health.canSeal ? keyOf(health.fingerprint) : html`<span class="failing">does not seal</span>`}</td><td data-label="unseals">${health.canUnseal ? 'yes' : html`<span class="failing">no</span>`}</td><td class="number" data-label="last KMS check">${health.kmsCheckAge === undefined ? 'unknown' : `${span(health.kmsCheckAge)} ago`}</td><td class="number" data-label="seals without KMS and store">${span(health.sealRemaining)}</td></tr>`;
    },
  )}</tbody></table></section>`;
}
