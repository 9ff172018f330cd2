import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

// node scripts/bundle.mjs PACKAGE FOLDER
//
// Copies a built package to FOLDER, as it is published: all its modules in one file, because Node loads one file about twice as
// fast as a hundred. Entry points re-export from that file, so that a class is the same one in each of them. There is
// still one declaration file per module. Builds for development are not bundled.

const [name = '', target = ''] = process.argv.slice(2);
const folder = join(fileURLToPath(new URL('../packages/', import.meta.url)), name);
const {
  exports,
  files,
  dependencies = {},
  peerDependencies = {},
} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** `./dist/ring/index.js` → `ring/index`. */
const entries = Object.values(exports).map((entry) => entry.default.slice('./dist/'.length, -'.js'.length));

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const parts = ['package.json', ...files.filter((one) => !one.startsWith('!') && one !== 'dist')];
for (const part of parts) cpSync(join(folder, part), join(target, part), { recursive: true });
const isDeclaration = (path) => !/\.js(\.map)?$|\.tsbuildinfo$/.test(path);
cpSync(join(folder, 'dist'), join(target, 'dist'), { recursive: true, filter: isDeclaration });

const bundle = await rolldown({
  cwd: target,
  input: Object.fromEntries(entries.map((entry) => [entry, join(target, 'src', `${entry}.ts`)])),
  external: [
    /^node:/,
    ...Object.keys({ ...dependencies, ...peerDependencies }).map((one) => new RegExp(`^${one}(/|$)`)),
  ],
  platform: 'node',
  transform: { target: 'es2023' },
  onLog(level, log) {
    throw new Error(`${level}: ${log.message}`);
  },
});
await bundle.write({
  dir: join(target, 'dist'),
  format: 'esm',
  sourcemap: true,
  // The package has the sources.
  sourcemapExcludeSources: true,
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  codeSplitting: { groups: [{ name: 'bundle', test: /[\\/]src[\\/]/ }] },
  // Names and lines stay, for stack traces; comments are in the sources.
  comments: false,
});
await bundle.close();
