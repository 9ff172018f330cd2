/**
 * The only style sheet of the page. It uses the fonts of the reader's system, so that nothing is loaded from another
 * host.
 */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --bg: #f6f7f9; --panel: #fff; --line: #e3e6eb; --text: #1b2330; --quiet: #677084;
  --seals: #2f6fed; --waits: #f0a53a; --opens: #b9c8e6; --bad: #d43d51; --good: #17915f; --now: #d43d51; }
@media (prefers-color-scheme: dark) { :root { --bg: #0f131a; --panel: #171d27; --line: #262f3d; --text: #e7ecf4; --quiet: #8d98ab;
  --seals: #5b93ff; --waits: #e9a23b; --opens: #3a4a6b; --bad: #f2687a; --good: #3cc98d; --now: #f2687a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 24px 40px; }
header { display: flex; align-items: baseline; gap: 14px; flex-wrap: wrap; margin-bottom: 20px; }
h1 { font-size: 22px; font-weight: 650; letter-spacing: -0.01em; margin: 0; }
h2 { font-size: 12px; font-weight: 650; letter-spacing: 0.06em; text-transform: uppercase; color: var(--quiet); margin: 0 0 14px; }
header .quiet { margin-left: auto; }
.quiet { color: var(--quiet); }
.pill { padding: 2px 10px; border-radius: 99px; font-size: 13px; font-weight: 600; border: 1px solid currentColor; }
.ok { color: var(--good); } .degraded { color: var(--waits); } .failing, .away { color: var(--bad); }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 20px 22px; margin-top: 16px; }
.note { border-left: 4px solid var(--waits); } .trouble { border-left: 4px solid var(--bad); }
.cards, .rates { display: grid; grid-template-columns: repeat(4, 1fr); gap: 16px; }
.cards .panel { margin: 0; padding: 16px 18px; }
.cards b { display: block; font-size: 20px; font-weight: 620; letter-spacing: -0.01em; margin: 2px 0; overflow-wrap: anywhere; }
.cards span, .cards small { color: var(--quiet); font-size: 13px; }
.rates { grid-template-columns: repeat(3, 1fr); gap: 28px; }
.timeline { width: 100%; height: auto; display: block; font-size: 12.5px; }
.timeline text { fill: var(--text); } .timeline .tick { fill: var(--quiet); text-anchor: middle; font-size: 11px; }
.timeline .hash { font-family: ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: 12px; }
.timeline .state { text-anchor: end; fill: var(--quiet); font-size: 12px; }
.timeline .active .state { fill: var(--seals); font-weight: 600; } .timeline .propagating .state { fill: var(--waits); font-weight: 600; }
.timeline .revoked .state { fill: var(--bad); } .timeline .revoked .part { opacity: 0.25; } .timeline .expired .part { opacity: 0.35; }
.grid { stroke: var(--line); } .now { stroke: var(--now); stroke-width: 1.5; } .now-dot { fill: var(--now); }
.part { rx: 3px; } .part.seals { fill: var(--seals); } .part.waits { fill: var(--waits); } .part.reserve { fill: var(--seals); opacity: 0.38; } .part.opens { fill: var(--opens); }
.legend { display: flex; gap: 20px; margin: 14px 0 0; padding: 0; list-style: none; font-size: 13px; color: var(--quiet); flex-wrap: wrap; }
.legend svg { width: 14px; height: 10px; margin-right: 6px; }
.rate { margin: 0; } .rate figcaption { display: flex; justify-content: space-between; align-items: baseline; }
.rate b { font-size: 20px; font-weight: 620; } .rate b small { font-size: 13px; font-weight: 400; color: var(--quiet); }
.rate svg { width: 100%; height: 72px; display: block; border-bottom: 1px solid var(--line); }
.rate polyline { fill: none; stroke: var(--seals); stroke-width: 2; vector-effect: non-scaling-stroke; } .rate polygon { fill: var(--seals); opacity: 0.14; }
.rate.refused polyline { stroke: var(--bad); } .rate.refused polygon { fill: var(--bad); }
.rate.unsealed polyline { stroke: var(--good); } .rate.unsealed polygon { fill: var(--good); }
table { width: 100%; border-collapse: collapse; font-size: 14px; } th { text-align: left; font-weight: 500; color: var(--quiet); font-size: 13px; }
th, td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); } tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; } .bar { width: 40%; } .bar svg { width: 100%; height: 10px; display: block; } .bar rect { fill: var(--bad); }
code { font-family: ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: 13px; }
.cards code { font-size: 17px; }
body.lost main { opacity: 0.45; } .offline { display: none; } body.lost .offline { display: block; }
.timeline.narrow { display: none; }
@media (max-width: 760px) { main { padding: 16px 12px 28px; } .panel { padding: 16px 14px; overflow-x: auto; }
  .cards { grid-template-columns: repeat(2, 1fr); gap: 12px; } .cards .panel { padding: 12px; } .rates { grid-template-columns: 1fr; }
  .timeline.wide { display: none; } .timeline.narrow { display: block; }
  .members thead { display: none; } .members tr { display: block; padding: 8px 0; border-bottom: 1px solid var(--line); } .members tr:last-child { border-bottom: 0; }
  .members td, .members td.number { display: flex; justify-content: space-between; gap: 12px; padding: 2px 0; border-bottom: 0; text-align: left; overflow-wrap: anywhere; }
  .members td:first-child { font-weight: 600; } .members td[data-label]::before { content: attr(data-label); color: var(--quiet); flex: none; } }
`;
