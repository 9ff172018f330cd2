import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from './packages.mjs';
import { main, root } from './prepare.mjs';

// Compares the size of each package with the table in docs/guides/packaging.md, or writes that (--write). They must be built.

const file = join(root, 'docs', 'guides', 'packaging.md');
const [begin, end] = ['<!-- sizes: npm run sizes -->\n', '<!-- /sizes -->'];
/** How much a package may grow before the check fails: a tenth, or 4 kB if that is more. */
const tolerated = (recorded) => recorded + Math.max(recorded / 10, 4);

function measure() {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-sizes-'));
  try {
    return pack(folder)
      .map(({ name, size, unpackedSize }) => ({ name, packed: kilobytes(size), unpacked: kilobytes(unpackedSize) }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const kilobytes = (bytes) => Math.ceil(bytes / 1000);

function readTable(text) {
  const rows = /^\| `(\S+)` \| (\d+) kB \| (\d+) kB \|$/gm;
  return new Map(Array.from(text.matchAll(rows), ([, name, packed, unpacked]) => [name, { packed, unpacked }]));
}

function table(sizes) {
  const rows = sizes.map(({ name, packed, unpacked }) => `| \`${name}\` | ${packed} kB | ${unpacked} kB |`);
  return `\n| package | tarball | unpacked |\n|---|---:|---:|\n${rows.join('\n')}\n\n`;
}

await main(async () => {
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`${file} has no place for the table`);
  const sizes = measure();
  if (process.argv.includes('--write')) {
    writeFileSync(file, text.slice(0, from) + table(sizes) + text.slice(to));
    return 0;
  }
  const recorded = readTable(text.slice(from, to));
  let worst = 0;
  for (const { name, ...now } of sizes) {
    const before = recorded.get(name);
    for (const what of ['packed', 'unpacked']) {
      if (before !== undefined && now[what] <= tolerated(Number(before[what]))) continue;
      const was = before === undefined ? 'not in the table' : `${before[what]} kB in the table`;
      process.stdout.write(`${name}: ${what} ${now[what]} kB, ${was}; if this is intended, run: npm run sizes\n`);
      worst = 1;
    }
  }
  return worst;
});
