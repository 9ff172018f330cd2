import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { npm, oursIn, pack, publishedPackages } from './packages.mjs';
import { main } from './prepare.mjs';

const help = `Usage: node scripts/sbom.mjs FOLDER [PACKAGE ...]

Writes a CycloneDX bill of materials for each published package, or for those named (core, mcp, …): what installing it into an
empty project brings today. The packages must be built.`;

/** Lists what npm would install beside the package, without installing it; the bill describes the package itself. */
function billOf(manifest, tarballs) {
  const project = mkdtempSync(join(tmpdir(), 'sealring-sbom-'));
  try {
    const ours = [manifest.name, ...oursIn(manifest)];
    const dependencies = Object.fromEntries(ours.map((name) => [name, `file:${tarballs.get(name)}`]));
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', version: '0.0.0', dependencies }));
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
    npm(['install', '--package-lock-only', '--prefer-offline', ...quiet], project);
    const bill = JSON.parse(npm(['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--silent'], project));
    return about(manifest, bill);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

function about({ name, version }, bill) {
  const component = bill.components.find((one) => one.purl.startsWith(purlOf(name, version)));
  if (component === undefined) throw new Error(`${name}@${version} is not in its own bill of materials`);
  const project = bill.metadata.component['bom-ref'];
  // Removes the path of the tarball on this machine.
  for (const one of bill.components) {
    one.externalReferences = one.externalReferences?.filter(({ url }) => !url.startsWith('file:'));
  }
  return {
    ...bill,
    metadata: { ...bill.metadata, component: { ...component, type: 'library' } },
    components: bill.components.filter((one) => one !== component),
    dependencies: bill.dependencies.filter(({ ref }) => ref !== project),
  };
}

function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

await main(async () => {
  const [folder, ...names] = process.argv.slice(2);
  if (folder === undefined || folder.startsWith('-')) {
    process.stdout.write(`${help}\n`);
    return folder === '--help' ? 0 : 2;
  }
  const all = publishedPackages();
  const unknown = names.find((name) => !all.some(({ folder: own }) => own.endsWith(`/${name}`)));
  if (unknown !== undefined) throw new Error(`no such package: ${unknown}`);
  const packed = mkdtempSync(join(tmpdir(), 'sealring-sbom-'));
  try {
    const tarballs = new Map(pack(packed).map(({ name, filename }) => [name, join(packed, filename)]));
    mkdirSync(resolve(folder), { recursive: true });
    for (const { folder: own, manifest } of all) {
      if (names.length > 0 && !names.some((name) => own.endsWith(`/${name}`))) continue;
      const bill = billOf(manifest, tarballs);
      const file = `${manifest.name.replace('@', '').replace('/', '-')}-${manifest.version}.cdx.json`;
      writeFileSync(join(resolve(folder), file), `${JSON.stringify(bill, null, 2)}\n`);
      process.stdout.write(`${file}: ${bill.components.length} components\n`);
    }
    return 0;
  } finally {
    rmSync(packed, { recursive: true, force: true });
  }
});
