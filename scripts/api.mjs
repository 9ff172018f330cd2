import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';

// Compares the public surface of the package in the current folder with its api*.md, or writes them (--write).
// api-extractor requires `<something>.api.md`, and one entry point per run, which this step works around.

const folder = process.cwd();
const write = process.argv.includes('--write');
const scratch = join(folder, '.cache', 'api');
const packageJsonFullPath = join(folder, 'package.json');
const { exports } = JSON.parse(readFileSync(packageJsonFullPath, 'utf8'));

/** Where the report of an entry point lives: `.` is api.md, `./name` is api.name.md. */
function reportName(entry) {
  return ['api', ...entry.split('/').slice(1), 'md'].join('.');
}

function extract(types) {
  const configFile = join(folder, 'api-extractor.json');
  const configObject = ExtractorConfig.loadFile(configFile);
  configObject.mainEntryPointFilePath = join(folder, types);
  const name = basename(types, '.d.ts');
  configObject.apiReport = {
    ...configObject.apiReport,
    reportFileName: name,
    reportFolder: scratch,
    reportTempFolder: join(scratch, 'temp'),
  };
  const config = ExtractorConfig.prepare({ configObject, configObjectFullPath: configFile, packageJsonFullPath });
  const { errorCount, warningCount } = Extractor.invoke(config, {
    localBuild: true,
    messageCallback(message) {
      // Its bundled compiler is older than this repository's on purpose, and this script copies the report itself.
      if (message.messageId.startsWith('console-')) message.logLevel = 'none';
    },
  });
  if (errorCount + warningCount > 0) process.exitCode = 1;
  return readFileSync(join(scratch, `${name}.api.md`), 'utf8');
}

function printDifference(before, after) {
  const [old, now] = [before.split('\n'), after.split('\n')];
  for (const line of old.filter((text) => !now.includes(text))) process.stdout.write(`- ${line}\n`);
  for (const line of now.filter((text) => !old.includes(text))) process.stdout.write(`+ ${line}\n`);
}

rmSync(scratch, { recursive: true, force: true });
mkdirSync(join(scratch, 'temp'), { recursive: true });
for (const [entry, { types }] of Object.entries(exports)) {
  const file = reportName(entry);
  const before = existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '';
  const after = extract(types);
  if (before === after) continue;
  if (write) {
    writeFileSync(join(folder, file), after);
    continue;
  }
  process.stdout.write(`${file} does not match the public API; if the change is intended, run: npm run api\n`);
  printDifference(before, after);
  process.exitCode = 1;
}
