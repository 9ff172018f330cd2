/** The style of the HTML report: one column, no width fixed, so that it fits 360 px; light and dark by the reader's choice. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d1d9e0;
  --pass: #1a7f37; --fail: #cf222e; --warn: #9a6700; --rest: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --paper: #0d1117; --card: #151b23;
  --line: #3d444d; --pass: #3fb950; --fail: #f85149; --warn: #d29922; --rest: #9198a1; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 50rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { border-left: .4rem solid var(--rest); padding: .2rem .8rem; font-weight: 600; }
.verdict.pass { border-color: var(--pass); }
.verdict.fail { border-color: var(--fail); }
dl { margin: .5rem 0; }
dt { color: var(--dim); font-size: .85rem; }
dd { margin: 0 0 .5rem; }
.strip { display: block; width: 100%; max-width: 30rem; height: auto; margin: 1rem 0; font: 700 14px system-ui, sans-serif; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; }
summary b { color: var(--rest); }
details.pass summary b { color: var(--pass); }
details.fail summary b { color: var(--fail); }
details.warn summary b { color: var(--warn); }
code { font: .9em/1.4 ui-monospace, monospace; white-space: pre-wrap; }
footer { color: var(--dim); font-size: .85rem; margin-top: 2rem; }
`;
