import { mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { pack } from './packages.mjs';
import { main, prepare, root } from './prepare.mjs';

const help = `Usage: npm run pack -- FOLDER

Builds every package and packs it into a tarball in FOLDER, which is created if it does not exist. Install the tarballs
in your project: npm install FOLDER/sealring-core-*.tgz FOLDER/sealring-mcp-*.tgz`;

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${help}\n`);
    return 0;
  }
  const [folder, ...others] = args;
  if (folder === undefined || others.length > 0 || folder.startsWith('-')) {
    throw new Error(`expected one folder, got ${args.length === 0 ? 'nothing' : args.join(' ')}\n\n${help}`);
  }
  // npm runs a script in the root, wherever it was called.
  const target = resolve(process.env.INIT_CWD ?? root, folder);
  await prepare();
  mkdirSync(target, { recursive: true });
  for (const { filename, size } of pack(target)) {
    const kilobytes = (size / 1_000).toFixed(0).padStart(5);
    process.stdout.write(`${kilobytes} kB  ${relative(process.env.INIT_CWD ?? root, join(target, filename))}\n`);
  }
  return 0;
});
