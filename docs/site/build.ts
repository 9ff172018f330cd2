import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application, Converter, type DocumentReflection, KindRouter, type Reflection, ReflectionKind } from 'typedoc';
import { headingText } from './heading-text.ts';
import { OUTLINE } from './outline.ts';

// Guides and the API of all packages as one folder of pages, which load nothing from other hosts: `npm run site`.

const root = fileURLToPath(new URL('../..', import.meta.url));
const out = process.argv[2] ?? join(root, '.cache', 'site');
const HOME = 'docs/README.md';
/** Marks a folder that this program wrote, so that it may replace it. */
const MARKER = '.sealring-site';
/** Entry points besides the main entry of each package. */
const MORE_ENTRIES = [
  'packages/core/src/adapter/index.ts',
  'packages/core/src/ring/index.ts',
  'packages/mcp/src/mcpd/index.ts',
];

if (!mayReplace(out)) {
  process.stderr.write(`${out} is not empty and was not written by this command: pass a new or an empty folder\n`);
  process.exit(2);
}

const pages = Object.entries(OUTLINE).flatMap(([group, paths]) => paths.map((path) => ({ group, path })));
const groupOf = new Map(pages.map(({ group, path }) => [path, group]));

/** Pages keep the names of their files, so that links to them stay valid. */
class FileRouter extends KindRouter {
  static readonly pathOf = new Map<Reflection, string>();

  override getIdealBaseName(reflection: Reflection): string {
    const path = FileRouter.pathOf.get(reflection);
    return path?.replace(/\.md$/, '').replace(/^docs\//, '') ?? super.getIdealBaseName(reflection);
  }
}

const app = await Application.bootstrap({
  name: 'Sealring',
  entryPoints: [join(root, 'packages/*/src/index.ts'), ...MORE_ENTRIES.map((path) => join(root, path))],
  tsconfig: join(root, 'docs/site/tsconfig.json'),
  basePath: root,
  displayBasePath: root,
  projectDocuments: pages.map(({ path }) => join(root, path)).filter((path) => existsSync(path)),
  readme: join(root, HOME),
  router: 'file',
  sort: ['documents-first'],
  groupOrder: [...Object.keys(OUTLINE), '*'],
  navigation: { includeGroups: true, excludeReferences: true, includeCategories: false, includeFolders: false },
  highlightLanguages: ['ts', 'js', 'sh', 'json', 'python', 'sql', 'hcl', 'html', 'yaml', 'toml', 'diff', 'text'],
  excludePrivate: true,
  excludeInternal: true,
  disableSources: true,
  hideGenerator: true,
  githubPages: false,
  // It would delete the marker.
  cleanOutputDir: false,
  // Names that are not exported are not linked; a test checks the links in our own text.
  validation: { notExported: false, invalidLink: false, invalidPath: false },
  markdownItLoader: headingText,
  logLevel: 'Error',
});
app.renderer.defineRouter('file', FileRouter);

app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document: DocumentReflection) => {
  const path = relative(root, join(root, `${document.name}.md`));
  const [first, ...rest] = document.content;
  const title = /^\s*# (.*)$/m.exec(first?.kind === 'text' ? first.text : '')?.[1];
  if (first === undefined || title === undefined) throw new Error(`${path} does not begin with a title`);
  FileRouter.pathOf.set(document, path);
  document.name = title.replaceAll(/[`*]/g, '');
  // The page shows the title by itself.
  document.content = [{ ...first, text: first.text.replace(/^\s*# .*\n/, '') }, ...rest];
  document.frontmatter['group'] = groupOf.get(path) ?? 'More';
});
app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_, declaration) => {
  if (declaration.kind === ReflectionKind.Module) declaration.name = packageOf(declaration.name);
});

const project = await app.convert();
if (project === undefined) throw new Error('the packages could not be read');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
writeFileSync(join(out, MARKER), '');
await app.generateDocs(project, out);
process.exitCode = app.logger.hasErrors() ? 1 : 0;
process.stdout.write(`${join(relative(process.cwd(), out), 'index.html')}: the guides and the API of every package\n`);

/** Whether a folder is missing, empty, or written by this program. */
function mayReplace(folder: string): boolean {
  return !existsSync(folder) || existsSync(join(folder, MARKER)) || readdirSync(folder).length === 0;
}

/** `packages/core/src/adapter` → `@sealring/core/adapter`. */
function packageOf(module: string): string {
  const [folder = '', ...rest] = module.replace(/^packages\//, '').split('/src');
  const manifest = join(root, 'packages', folder, 'package.json');
  const name: string = existsSync(manifest)
    ? JSON.parse(readFileSync(manifest, 'utf8')).name
    : basename(dirname(module));
  return `${name}${rest.join('')}`;
}
